/* end.c - the end of a load: what moved while the rest was shown, what stands nowhere or was
 * hidden, and what is said of it all.
 */
#include "redis/read/read.h"

#define MORE 1

/* Everything was shown; or, after the sweep, there are topics more.  MORE: call again. */
static int finish(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    int rc = s->unsure ? 0 : due__redis_sweep(s, until_ns); /* else all records were shown */

    if (rc == 0)
        rc = due__redis_enter_unlisted(s, until_ns);
    if (rc == 0 && l->topic <= l->topics->elements + l->n_unlisted)
        return MORE;
    return rc == 0 ? due__redis_all_read(s, until_ns) : rc;
}

static void tell(struct due__redis *s)
{
    const struct due__redis_load *l = s->load;

    if (l->set_aside > 0)
        due__store_log(&s->how, DUE_LOG_WARNING, "%zu damaged records were set aside in %s",
                       l->set_aside, s->keys.aside);
    if (l->newer > 1)
        due__store_log(&s->how, DUE_LOG_WARNING, "%zu jobs of a newer version stay in the store",
                       l->newer);
    if (l->put_back > 0)
        due__store_log(&s->how, DUE_LOG_WARNING,
                       "%zu jobs stood in the wrong place, and were put where their records say",
                       l->put_back);
    if (l->hidden > 0)
        due__store_log(&s->how, DUE_LOG_WARNING, "%zu jobs stood in topics that were missing in %s",
                       l->hidden, s->keys.topics);
}

/* Jobs moved behind the cursor before they were shown, one by one: there are few. */
int due__redis_load_end(struct due__redis *s, size_t *shown, size_t max, due_store_visit *visit,
                        void *ctx, int64_t until_ns)
{
    struct due__redis_load *l = s->load;

    while (l->stray < l->n_strays) {
        if (max > 0 && *shown >= max)
            return MORE;
        int rc = due__redis_find(s, l->strays[l->stray].id, visit, ctx, until_ns);
        if (l->losses != s->losses) /* what is left of it is another queue */
            return DUE_ESTORE;
        if (rc != 0 && rc != DUE_ENOENT && rc != DUE_EVERSION)
            return rc;
        l->stray++;
        (*shown)++;
    }
    int rc = finish(s, until_ns);
    if (rc != 0)
        return rc;
    l->ended = true;
    tell(s);
    return 0;
}
