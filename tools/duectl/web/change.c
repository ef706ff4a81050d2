/* change.c - dead jobs are kicked or dropped: by this process, which owns the queue meanwhile, or
 * by its owner, who is asked.
 *
 * A change is asked for as on a control socket, and answered as there.
 */
#include "web/web.h"

#include <inttypes.h>
#include <stdio.h>

bool ctl_change_is_known(const struct due__ctl_request *r)
{
    return r->verb == DUE__CTL_KICK || r->verb == DUE__CTL_DROP || r->verb == DUE__CTL_KICK_ALL ||
           r->verb == DUE__CTL_DROP_ALL;
}

static int change_ids(struct ctl_access *a, const struct due__ctl_request *r,
                      struct due__ctl_buffer *out)
{
    int results[CTL_NAMED];
    char id[DUE_ID_TEXT];
    int rc = r->verb == DUE__CTL_KICK ? a->verbs->kick(a, r->ids, r->n, results)
                                      : a->verbs->drop(a, r->ids, r->n, results);

    for (size_t i = 0; rc == 0 && i < r->n; i++)
        due__ctl_buffer_text(out, "{\"id\":\"%s\",\"result\":\"%s\"}\n",
                             due_id_format(r->ids[i], id), due_error_name(results[i]));
    return rc;
}

static int change_all(struct ctl_access *a, const struct due__ctl_request *r,
                      struct due__ctl_buffer *out)
{
    const char *topic = r->has_topic ? r->topic : NULL;
    uint64_t count = 0;
    int rc = r->verb == DUE__CTL_KICK_ALL ? a->verbs->kick_all(a, topic, &count)
                                          : a->verbs->drop_all(a, topic, &count);

    due__ctl_buffer_text(out, "{\"count\":%" PRIu64 "}\n", count);
    return rc;
}

int ctl_change(const struct ctl_look *look, const void *ctx, struct due__ctl_buffer *out)
{
    const struct due__ctl_request *request = ctx;
    bool named = request->verb == DUE__CTL_KICK || request->verb == DUE__CTL_DROP;
    struct ctl_access access;
    int status = ctl_access_open(&access, look, true);

    if (status != 0)
        return status;
    int rc = named ? change_ids(&access, request, out) : change_all(&access, request, out);
    if (rc != 0 && rc != DUE_ESTORE) /* that was said */
        fprintf(stderr, "duectl: %s\n", due_error_text(rc));
    return ctl_access_close(&access, rc == 0 ? CTL_FINE : ctl_status_of(rc));
}
