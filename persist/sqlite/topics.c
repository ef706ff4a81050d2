/* topics.c - topics have numbers in the file, of which some are remembered. */
#include <stdlib.h>
#include <string.h>

#include "sqlite/session.h"

static struct due__sqlite_topic *slot_of(struct due__sqlite *s, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return &s->topic[(hash ^ hash >> 32) & (DUE__SQLITE_TOPICS - 1)];
}

/* What cannot be remembered is looked up again. */
static void remember(struct due__sqlite_topic *slot, const char *name, int64_t number)
{
    free(slot->name);
    slot->name = strdup(name);
    slot->number = number;
}

int due__sqlite_topic(struct due__sqlite *s, const char *name, int64_t *number)
{
    struct due__sqlite_topic *slot = slot_of(s, name);
    int len = (int)strlen(name);

    if (slot->name != NULL && strcmp(slot->name, name) == 0) {
        *number = slot->number;
        return 0;
    }
    sqlite3_bind_blob(s->statement[DUE__SQL_TOPIC], 1, name, len, SQLITE_STATIC);
    int rc = due__sqlite_number(s, DUE__SQL_TOPIC, number);
    if (rc == SQLITE_DONE) {
        sqlite3_bind_blob(s->statement[DUE__SQL_TOPIC_ADD], 1, name, len, SQLITE_STATIC);
        rc = due__sqlite_run(s, DUE__SQL_TOPIC_ADD, NULL);
        *number = sqlite3_last_insert_rowid(s->db);
    }
    if (rc == 0)
        remember(slot, name, *number);
    return rc;
}

void due__sqlite_topics_forget(struct due__sqlite *s)
{
    for (size_t i = 0; i < DUE__SQLITE_TOPICS; i++) {
        free(s->topic[i].name);
        s->topic[i].name = NULL;
    }
}
