/* scripts.h - the scripts of a shared queue, as they are sent to a server.
 *
 * They lie in persist/redis/scripts; their heads say what keys and words each takes, and what it
 * answers.  cmake/Scripts.cmake puts them together.
 *
 * A script makes all of its functions anew each time, and names of keys cost as much as small
 * commands.  So there are plain kinds of those that put and work, for jobs without key and group.
 */
#ifndef DUE__SHARE_SCRIPTS_H
#define DUE__SHARE_SCRIPTS_H

#include <stddef.h>

#define DUE__SCRIPT_KEYS 10

struct due__script {
    const char *name; /* */
    const char *text; /* for SCRIPT LOAD */
    size_t len;       /* */
    char sha[41];     /* for EVALSHA */
    /* The keys that it has behind those of topics, where it has any; what ends with a colon is one
     * of each topic. */
    const char *behind[DUE__SCRIPT_KEYS];
};

extern const struct due__script due__script_put, due__script_put_plain, due__script_work,
    due__script_work_plain, due__script_edit, due__script_join, due__script_leave, due__script_beat,
    due__script_census, due__script_page, due__script_key, due__script_evict, due__script_aside;

/* Of a queue whose order is by priority, in place of those. */
extern const struct due__script due__script_put_by_rank, due__script_put_plain_by_rank,
    due__script_work_by_rank, due__script_work_plain_by_rank, due__script_edit_by_rank,
    due__script_aside_by_rank;

/* Of a conversion (convert.c, index.c). */
extern const struct due__script due__script_fold, due__script_clear, due__script_own,
    due__script_under_way, due__script_index, due__script_heads, due__script_share,
    due__script_ranks;

#endif
