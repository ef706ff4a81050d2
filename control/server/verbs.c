/* verbs.c - changes of a queue, with an answer for each job. */
#include "server/verbs.h"

#include "wire/request.h"

/* How many of these go into one batch: a job with something wrong goes alone, for all of a batch is
 * refused with it. */
static size_t some_of(const due_queue *q, const due_spec *specs, size_t n)
{
    size_t some = 0;

    while (some < n && due_spec_error(q, &specs[some]) == NULL)
        some++;
    return some > 0 ? some : 1;
}

/* A batch ends before the job that is refused, and the next one begins with it. */
int due__ctl_put(due_queue *q, const char *topic, due_spec *specs, size_t n, int64_t wait_ns,
                 due_id *ids, int *results, size_t *done)
{
    int number = due_topic(q, topic);

    if (number < 0)
        return number;
    for (size_t i = *done; i < n; i++)
        specs[i].topic = number;
    while (*done < n) {
        size_t some = some_of(q, specs + *done, n - *done);
        int rc = due_enqueue_batch(q, specs + *done, some, wait_ns, ids + *done);

        if (rc < 0 && !due__ctl_is_of_job(rc))
            return rc;
        for (int i = 0; i < rc; i++)
            results[(*done)++] = 0;
        if (rc < 0)
            results[(*done)++] = rc;
    }
    return 0;
}

/* What waits can be found, and what is dead cannot, but can be read. */
int due__ctl_is_dead(due_queue *q, due_id id, bool shared)
{
    due_info info;
    int rc = due_find(q, id, &info);

    if (rc == 0)
        return DUE_ENOENT;
    if (rc == DUE_ENOENT && shared)
        return 0;
    return rc == DUE_ENOENT ? due_read(q, id, NULL, 0, NULL) : rc;
}

int due__ctl_of_topic(due_queue *q, const char *topic, int (*call)(due_queue *q, int topic))
{
    int number = topic == NULL ? DUE_ALL_TOPICS : due_topic(q, topic);

    return topic != NULL && number < 0 ? number : call(q, number);
}

int due__ctl_count_of_topic(due_queue *q, const char *topic, uint64_t *count,
                            int (*call)(due_queue *q, int topic, uint64_t *count))
{
    int number = topic == NULL ? DUE_ALL_TOPICS : due_topic(q, topic);

    return topic != NULL && number < 0 ? number : call(q, number, count);
}
