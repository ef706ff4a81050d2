/* scrape.c - `duectl metrics --listen`: the figures for Prometheus, made anew for each request.
 *
 *     GET /metrics
 *
 * What is wrong with the store is said on standard error, once until it is something else; whoever
 * asks is only told that something is.
 */
#include "web/http.h"

#include <stdio.h>
#include <string.h>

#include "due/metrics.h"

static const char path[] = "/metrics";

/* The errand: what the command prints goes to the pipe that is its standard output. */
static int scrape(const struct ctl_look *look, const void *ctx, struct due__ctl_buffer *out)
{
    (void)ctx;
    (void)out;
    return ctl_metrics_show(look);
}

/* Jobs that cannot be read are said, as by the command, and the figures are those of the others. */
static struct MHD_Response *made(struct ctl_web *w, struct ctl_errand *e, unsigned *code)
{
    static const char away[] = "the queue cannot be read now: duectl says why on standard error\n";
    bool fine = (e->status == CTL_FINE || e->status == CTL_FAULTS) && e->out.len > 0;

    if (ctl_history_said(&w->queues[0].history, e))
        fwrite(e->said.bytes, 1, e->said.len, stderr);
    *code = fine ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
    return fine ? ctl_http_response(e->out.bytes, e->out.len, DUE_METRICS_TYPE)
                : ctl_http_response(away, sizeof away - 1, "text/plain; charset=utf-8");
}

static enum MHD_Result ask(struct ctl_asked *asked, const char *method, const char *url)
{
    const char *why;
    unsigned code = ctl_http_refused(asked, &why);

    if (code != 0)
        return ctl_http_refuse(asked, code, why);
    if (strcmp(url, path) != 0)
        return ctl_http_refuse(asked, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return ctl_http_refuse(asked, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n");
    return ctl_http_begin(asked, scrape, NULL);
}

static bool opened(struct ctl_web *w)
{
    fprintf(stderr, "duectl: metrics at http://%s:%d%s\n", w->address, w->port, path);
    return true;
}

static const struct ctl_site figures = {
    .methods = "GET, HEAD",
    .opened = opened,
    .ask = ask,
    .made = made,
};

int ctl_scrape_serve(struct ctl_look *look)
{
    return ctl_site_serve(&figures, look);
}
