/* lists.c - lists of ids and of topics that grow as they are read. */
#include "inspect/lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ctl_no_memory(void)
{
    fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
    return false;
}

bool ctl_ids_add(struct ctl_ids *list, const due_id *id)
{
    if (list->n == list->room) {
        size_t room = list->room == 0 ? 1024 : 2 * list->room;
        due_id *more = realloc(list->id, room * sizeof *more);

        if (more == NULL)
            return ctl_no_memory();
        list->id = more;
        list->room = room;
    }
    list->id[list->n++] = *id;
    return true;
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(due_id));
}

void ctl_ids_sort(struct ctl_ids *list)
{
    if (list->n > 0)
        qsort(list->id, list->n, sizeof *list->id, compare);
}

void ctl_ids_unique(struct ctl_ids *list)
{
    size_t kept = 0;

    ctl_ids_sort(list);
    for (size_t i = 0; i < list->n; i++) {
        if (kept == 0 || compare(&list->id[i], &list->id[kept - 1]) != 0)
            list->id[kept++] = list->id[i];
    }
    list->n = kept;
}

bool ctl_ids_have(const struct ctl_ids *list, const due_id *id)
{
    return list->n > 0 && bsearch(id, list->id, list->n, sizeof *id, compare) != NULL;
}

bool ctl_topics_have(const struct ctl_topics *list, struct ctl_text name)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->text[i].len == name.len && memcmp(list->text[i].at, name.at, name.len) == 0)
            return true;
    }
    return false;
}

bool ctl_topics_add(struct ctl_topics *list, struct ctl_text name)
{
    char *copy;

    if (list->n == list->room) {
        size_t room = list->room == 0 ? 16 : 2 * list->room;
        struct ctl_text *more = realloc(list->text, room * sizeof *more);

        if (more == NULL)
            return ctl_no_memory();
        list->text = more;
        list->room = room;
    }
    copy = malloc(name.len + 1);
    if (copy == NULL)
        return ctl_no_memory();
    memcpy(copy, name.at, name.len);
    copy[name.len] = '\0';
    list->text[list->n++] = (struct ctl_text){ copy, name.len };
    return true;
}
