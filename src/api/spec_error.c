/* spec_error.c - what is wrong with a spec, in words, for who was told DUE_EINVAL.
 *
 * Edges      described elsewhere: T1 topic.c
 */
#include "os/atomic.h"
#include "queue/extras.h"
#include "queue/queue.h"

static const char *time_wrong(const due_spec *s)
{
    if (s->flags & ~(unsigned)DUE_SPEC_AT)
        return "a flag is none of DUE_SPEC_*";
    if (s->delay_ns < 0)
        return "delay_ns is negative";
    if (s->at_ns < 0)
        return "at_ns is negative";
    return due__time_ok(s) ? NULL : "both delay_ns and at_ns are given";
}

static const char *payload_wrong(const struct due_queue *q, const due_spec *s)
{
    if (s->data == NULL && s->len > 0)
        return "len without data";
    if (s->data != NULL && s->ptr != NULL)
        return "both data and ptr are given";
    if (s->ptr != NULL && q->stored)
        return "ptr in a queue with a store: it would mean nothing after a restart";
    return s->len > q->payload_max ? "len is more than a payload may have" : NULL;
}

const char *due_spec_error(const due_queue *q, const due_spec *spec)
{
    due_spec s;
    due_extra more;
    int rc = due__spec_read(&s, &more, spec);
    const char *wrong = rc == 0 ? time_wrong(&s) : NULL;

    if (rc == DUE_EINVAL)
        return "a size is not that of a struct: begin with DUE_SPEC_INIT, and DUE_EXTRA_INIT";
    if (rc == DUE_ENOTSUP)
        return "a field is set that this version of the library does not know";
    if (wrong == NULL && (s.priority < 0 || s.priority > 255))
        wrong = "priority is not 0 to 255";
    if (wrong == NULL &&
        (s.topic < 0 || (uint32_t)s.topic >= due__load_acquire(&q->topic_count))) /* T1 */
        wrong = "topic is no number that due_topic() has given";
    if (wrong == NULL)
        wrong = payload_wrong(q, &s);
    return wrong == NULL && s.more != NULL ? due__extras_wrong(s.more) : wrong;
}
