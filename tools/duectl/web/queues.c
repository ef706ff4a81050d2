/* queues.c - which queues the page is of, and how each stands in its list.
 *
 * A file is a queue, and so is each name of --queue in a server, or a control socket where there is
 * no store.  Their numbers, from 1, are the order in which they were named.
 *
 * What a queue is called may be any bytes, as the path of a file is.  Of the URL of a server only
 * that is shown which is neither user, password nor option.
 */
#include "web/web.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Which there are ------------------------------------------------------------------------- */

/* False: said that there are too many. */
static bool add_queue(struct ctl_web *w, const char *url, const char *name, const char *control)
{
    if (w->queue_count == CTL_QUEUES)
        return ctl_look_wrong(w->look, "16 queues at most", w->look->command);
    struct ctl_watched *q = &w->queues[w->queue_count++];
    q->look = *w->look;
    q->look.url = url;
    q->look.queue = name;
    q->look.control = control;
    q->look_ns = DUE_FOREVER;
    return true;
}

static bool add_store(struct ctl_web *w, const char *url)
{
    const struct ctl_several *s = &w->look->several;
    size_t n = s->queue_count > 0 && ctl_file_of(url) == NULL ? s->queue_count : 1;

    for (size_t i = 0; i < n; i++) {
        if (!add_queue(w, url, s->queue_count > 0 ? s->queues[i] : w->look->queue, NULL))
            return false;
    }
    return true;
}

static bool add_controls(struct ctl_web *w)
{
    const struct ctl_several *s = &w->look->several;

    if (s->control_count == 0)
        return true;
    if (s->control_count != w->queue_count)
        return ctl_look_wrong(w->look, "one for each queue, in their order, or - for none",
                              "--control");
    for (size_t i = 0; i < w->queue_count; i++)
        w->queues[i].look.control = strcmp(s->controls[i], "-") == 0 ? NULL : s->controls[i];
    return true;
}

bool ctl_watched_open(struct ctl_web *w)
{
    const struct ctl_look *look = w->look;
    const struct ctl_several *s = &look->several;

    for (size_t i = 0; i < s->url_count; i++) {
        if (!add_store(w, s->urls[i]))
            return false;
    }
    if (s->url_count == 0 && look->url != NULL && !add_store(w, look->url))
        return false;
    if (look->url != NULL)
        return add_controls(w);
    if (s->control_count == 0)
        return add_queue(w, NULL, look->queue, look->control);
    for (size_t i = 0; i < s->control_count; i++) {
        if (strcmp(s->controls[i], "-") == 0)
            return ctl_look_wrong(look, "there is no store of which this is the queue", "-");
        if (!add_queue(w, NULL, look->queue, s->controls[i]))
            return false;
    }
    return true;
}

struct ctl_watched *ctl_watched_of(struct ctl_web *w, const struct ctl_errand *e)
{
    for (size_t i = 0; i < w->queue_count; i++) {
        if (e->look == &w->queues[i].look)
            return &w->queues[i];
    }
    return NULL;
}

/* ---- How they stand in the list -------------------------------------------------------------- */

/* Host, port and database of a URL. */
static const char *place_of(const char *url, size_t *len)
{
    const char *scheme = strstr(url, "://");
    const char *at = strrchr(url, '@');
    const char *place = at != NULL ? at + 1 : scheme != NULL ? scheme + 3 : url;

    *len = strcspn(place, "?");
    return place;
}

static void add_name(const struct ctl_look *look, struct due__ctl_buffer *to)
{
    const char *path = look->url == NULL ? look->control : ctl_file_of(look->url);
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    const char *name = path == NULL ? look->queue : slash == NULL ? path : slash + 1;
    size_t len = path == NULL ? 0 : strlen(path);
    const char *place = path == NULL ? place_of(look->url, &len) : path;

    due__ctl_buffer_text(to, "\"name\":");
    due__ctl_json_shown(to, name, strlen(name));
    due__ctl_buffer_text(to, ",\"place\":");
    due__ctl_json_shown(to, place, len);
}

static void add_queue_line(const struct ctl_web *w, size_t at, struct due__ctl_buffer *to)
{
    const struct ctl_watched *q = &w->queues[at];
    int64_t busy_ns = w->errands[at].pid != 0 ? ctl_web_now() - q->began_ns : 0;

    due__ctl_buffer_text(to, "{\"listed\":{\"number\":%zu,", at + 1);
    add_name(&q->look, to);
    due__ctl_buffer_text(to, ",\"store\":%s,\"end\":%d,\"said\":",
                         q->look.url != NULL ? "true" : "false", q->history.status);
    ctl_said_dump(to, &q->history.said);
    due__ctl_buffer_text(to, ",\"busy_ms\":%" PRId64 ",\"last\":", busy_ns / 1000000);
    ctl_history_last(&q->history, to);
    due__ctl_buffer_text(to, "}}\n");
}

void ctl_watched_write(const struct ctl_web *w, struct due__ctl_buffer *to)
{
    for (size_t i = 0; w->queue_count > 1 && i < w->queue_count; i++)
        add_queue_line(w, i, to);
}
