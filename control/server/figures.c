/* figures.c - requests for the figures of a queue, and which queues there are. */
#include "server/server.h"

#include <inttypes.h>
#include <unistd.h>

#include "due/metrics.h"

int due__ctl_carry_stats(struct due__ctl_carrier *c)
{
    struct due_stats s;
    int rc = due_stats_read(c->of->queue, &s);

    if (rc != 0)
        return rc;
    const struct {
        const char *name;
        uint64_t value;
    } all[] = { { "waiting", s.waiting },
                { "ready", s.ready },
                { "reserved", s.leased },
                { "dead", s.dead },
                { "kept_back", s.kept_back },
                { "enqueued", s.enqueued },
                { "restored", s.restored },
                { "dequeued", s.dequeued },
                { "acked", s.acked },
                { "nacked", s.nacked },
                { "retried", s.retried },
                { "buried", s.buried },
                { "kicked", s.kicked },
                { "cancelled", s.cancelled },
                { "discarded", s.discarded },
                { "unsettled", s.unsettled },
                { "loading", (uint64_t)s.loading } };

    due__ctl_buffer_text(c->answer, "{\"queue\":\"%s\",\"pid\":%d,\"store\":\"%s\"", c->of->name,
                         (int)getpid(), due_error_name(s.store_state));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        due__ctl_buffer_text(c->answer, ",\"%s\":%" PRIu64, all[i].name, all[i].value);
    due__ctl_buffer_text(c->answer, "}\n");
    return 0;
}

/* More topics may come while it is written: then it is written again. */
int due__ctl_carry_metrics(struct due__ctl_carrier *c)
{
    struct due__ctl_buffer text = { 0 };
    int len = due_metrics_write(c->of->queue, NULL, 0);

    while (len >= 0 && (size_t)len >= text.room && text.room < DUE__CTL_ANSWER_MAX / 4) {
        if (!due__ctl_buffer_grow(&text, (size_t)len + 4096)) {
            due__ctl_buffer_free(&text);
            return DUE_ENOMEM;
        }
        len = due_metrics_write(c->of->queue, text.bytes, text.room);
    }
    if (len >= 0 && (size_t)len >= text.room)
        len = DUE_ELIMIT;
    if (len >= 0) {
        due__ctl_buffer_text(c->answer, "{\"metrics\":");
        due__ctl_json_put(c->answer, text.bytes, (size_t)len);
        due__ctl_buffer_text(c->answer, "}\n");
    }
    due__ctl_buffer_free(&text);
    return len < 0 ? len : 0;
}

int due__ctl_carry_queues(struct due__ctl_carrier *c)
{
    for (size_t i = 0; i < c->served->n; i++) {
        const struct due__ctl_queue *q = &c->served->queues[i];
        bool changed = (q->flags & DUE_CONTROL_READ_ONLY) == 0;
        bool put = changed && (q->flags & DUE_CONTROL_NO_PUT) == 0;

        due__ctl_buffer_text(c->answer, "{\"queue\":\"%s\",\"pid\":%d,\"changes\":%s,\"put\":%s}\n",
                             q->name, (int)getpid(), changed ? "true" : "false",
                             put ? "true" : "false");
    }
    return 0;
}
