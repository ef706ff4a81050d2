/* carry.c - a request on the socket is carried out: for which queue it is, and by whom. */
#include "server/server.h"

#include <string.h>

static const struct due__ctl_queue *queue_of(const struct due__ctl_served *s, const char *name)
{
    if (name[0] == '\0')
        return s->n == 1 ? &s->queues[0] : NULL;
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->queues[i].name, name) == 0)
            return &s->queues[i];
    }
    return NULL;
}

static bool is_refused(const struct due__ctl_carrier *c)
{
    enum due__ctl_verb verb = c->request->verb;

    return (verb == DUE__CTL_PUT && (c->of->flags & DUE_CONTROL_NO_PUT) != 0) ||
           (due__ctl_changes(verb) && (c->of->flags & DUE_CONTROL_READ_ONLY) != 0);
}

/* Who asked is to do nothing again that may be done: so it is in doubt, and not late. */
int due__ctl_carry_stored(struct due__ctl_carrier *c)
{
    int rc = due_flush(c->of->queue, DUE__CTL_REQUEST_NS);

    return rc == DUE_ETIMEDOUT ? DUE_EINDOUBT : rc;
}

static int carry_verb(struct due__ctl_carrier *c)
{
    switch (c->request->verb) {
    case DUE__CTL_CANCEL:
    case DUE__CTL_KICK:
    case DUE__CTL_DROP:
    case DUE__CTL_PROMOTE:
    case DUE__CTL_RESCHEDULE:
        return due__ctl_carry_ids(c);
    case DUE__CTL_PUT:
        return due__ctl_carry_put(c);
    case DUE__CTL_SHOW:
        return due__ctl_carry_show(c);
    case DUE__CTL_LIST:
        return due__ctl_carry_list(c);
    case DUE__CTL_DEAD:
        return due__ctl_carry_dead(c);
    case DUE__CTL_STATS:
        return due__ctl_carry_stats(c);
    case DUE__CTL_METRICS:
        return due__ctl_carry_metrics(c);
    default:
        return due__ctl_carry_all(c);
    }
}

/* Of a queue. */
static int carry_for(struct due__ctl_carrier *c)
{
    c->of = queue_of(c->served, c->request->queue);
    if (c->of == NULL) {
        due__ctl_carry_fault(c->answer, c->request->queue[0] == '\0'
                                            ? "which queue? there are several"
                                            : "no such queue");
        return DUE_EINVAL;
    }
    return is_refused(c) ? DUE_ENOTSUP : carry_verb(c);
}

void due__ctl_carry(struct due__ctl_carrier *c)
{
    int rc = c->request->verb == DUE__CTL_QUEUES ? due__ctl_carry_queues(c) : carry_for(c);

    if (c->answer->failed) { /* a line may be cut */
        due__ctl_buffer_free(c->answer);
        rc = DUE_ENOMEM;
    }
    due__ctl_carry_end(c->answer, rc);
}

void due__ctl_carry_fault(struct due__ctl_buffer *answer, const char *fault)
{
    due__ctl_buffer_text(answer, "{\"fault\":");
    due__ctl_json_put(answer, fault, strlen(fault));
    due__ctl_buffer_text(answer, "}\n");
}

void due__ctl_carry_end(struct due__ctl_buffer *answer, int rc)
{
    due__ctl_buffer_text(answer, "{\"end\":\"%s\"}\n", due_error_name(rc));
}
