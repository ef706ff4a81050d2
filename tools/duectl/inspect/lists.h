/* lists.h - lists of ids and of topics that grow as they are read. */
#ifndef DUECTL_LISTS_H
#define DUECTL_LISTS_H

#include "inspect/server.h"

struct ctl_ids {
    due_id *id;
    size_t n, room;
};

struct ctl_topics {
    struct ctl_text *text; /* copies */
    size_t n, room;
};

/* Says that there is none.  False. */
bool ctl_no_memory(void);

/* False: no memory, which was said. */
bool ctl_ids_add(struct ctl_ids *list, const due_id *id);
void ctl_ids_sort(struct ctl_ids *list);
/* Sorted, and each once. */
void ctl_ids_unique(struct ctl_ids *list);
/* Of one that is sorted. */
bool ctl_ids_have(const struct ctl_ids *list, const due_id *id);

bool ctl_topics_have(const struct ctl_topics *list, struct ctl_text name);
/* False: no memory, which was said. */
bool ctl_topics_add(struct ctl_topics *list, struct ctl_text name);

#endif
