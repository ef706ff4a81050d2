/* share_shown.c - what a shared store shows to who only looks, for its tests. */
#include "store/share_frame.h"

/* ---- Looking ---- */

int sharing_find(struct sharing *t, int s, size_t job)
{
    return suite_find(&t->base, s, t->base.jobs[job].record.id);
}

static struct due_census_topic counted[32];
static char counted_name[32][DUE_TOPIC_LENGTH + 1];
static size_t n_counted;

static int count_topic(void *ctx, const struct due_census_topic *topic)
{
    (void)ctx;
    if (n_counted < 32) {
        snprintf(counted_name[n_counted], sizeof counted_name[n_counted], "%s", topic->topic);
        counted[n_counted] = *topic;
        counted[n_counted].topic = counted_name[n_counted];
        n_counted++;
    }
    return 0;
}

int sharing_census(struct sharing *t, int s, struct due_census_all *all)
{
    int64_t end_ns = suite_soon();
    int rc;

    do {
        n_counted = 0;
        rc = sharing_verbs(t, s)->census(t->base.stores[s], all, count_topic, NULL, end_ns);
    } while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    return rc;
}

struct due_census_topic sharing_counted(const char *topic)
{
    for (size_t i = 0; i < n_counted; i++)
        if (strcmp(counted[i].topic, topic) == 0)
            return counted[i];
    return (struct due_census_topic){ .topic = topic, .oldest_ns = DUE_FOREVER };
}

struct page_seen {
    struct sharing *t;
    size_t *jobs;
    size_t n;
};

static int see_job(void *ctx, const due_record *record)
{
    struct page_seen *page = ctx;

    (void)suite_visit(&page->t->base, record);
    page->jobs[page->n++] = sharing_job_named(page->t, record->id);
    return 0;
}

size_t sharing_dead(struct sharing *t, int s, size_t from, size_t max, size_t *jobs)
{
    struct page_seen page = { .t = t, .jobs = jobs };
    int64_t end_ns = suite_soon();
    int rc;

    do {
        page.n = 0;
        rc = sharing_verbs(t, s)->dead(t->base.stores[s], from, max, see_job, &page, end_ns);
    } while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    (void)suite_answers(&t->base, rc, (int)page.n, __FILE__, __LINE__, "dead");
    return page.n;
}

size_t sharing_page(struct sharing *t, int s, struct due_page *at, size_t max, size_t *jobs,
                    bool *more)
{
    struct page_seen page = { .t = t, .jobs = jobs };
    int64_t end_ns = suite_soon();
    int rc;

    do {
        page.n = 0;
        rc = sharing_verbs(t, s)->page(t->base.stores[s], at, max, see_job, &page, end_ns);
    } while (rc == DUE_EAGAIN && suite_now_ns() < end_ns);
    (void)suite_check(&t->base, rc == 0 || rc == 1, __FILE__, __LINE__, "page: %s",
                      due_error_name(rc));
    *more = rc == 1;
    return page.n;
}
