/* http.c - requests: each is handed to what is served, and answered at once or by an errand.
 *
 * A request is looked at once its head is there, and a refused one is answered then.  One that
 * takes an errand is suspended until that is over.
 *
 * A connection has REQUEST_NS for each request from its first byte to the last of the answer, apart
 * from what the errand takes, however it drips; and nothing it sends is larger than it may be.
 */
#include "web/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define REQUEST_NS DUE_S(20)
#define READ_NS    DUE_S(60) /* for an errand */
#define WRITE_NS   DUE_S(30)

enum { IDLE_SECONDS = 10 };

/* ---- Answers --------------------------------------------------------------------------------- */

struct MHD_Response *ctl_http_response(const void *bytes, size_t len, const char *type)
{
    static const char *const heads[][2] = {
        { "Cache-Control", "no-store" },
        { "X-Content-Type-Options", "nosniff" },
        { "X-Frame-Options", "DENY" },
        { "Referrer-Policy", "no-referrer" },
        { "Cross-Origin-Resource-Policy", "same-origin" },
        { "Cross-Origin-Opener-Policy", "same-origin" },
        { "Content-Security-Policy",
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
          "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
          "require-trusted-types-for 'script'; trusted-types 'none'" },
    };
    struct MHD_Response *r =
        MHD_create_response_from_buffer(len, (void *)bytes, MHD_RESPMEM_MUST_COPY);

    if (r == NULL)
        return NULL;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        (void)MHD_add_response_header(r, heads[i][0], heads[i][1]);
    (void)MHD_add_response_header(r, "Content-Type", type);
    return r;
}

enum MHD_Result ctl_http_deliver(struct MHD_Connection *c, unsigned code, struct MHD_Response *r)
{
    if (r == NULL)
        return MHD_NO;
    enum MHD_Result rc = MHD_queue_response(c, code, r);
    MHD_destroy_response(r);
    return rc;
}

enum MHD_Result ctl_http_refuse(struct ctl_asked *asked, unsigned code, const char *why)
{
    struct MHD_Response *r = ctl_http_response(why, strlen(why), "text/plain; charset=utf-8");

    if (r != NULL && code == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(r, "Allow", asked->web->site->methods);
    if (r != NULL)
        (void)MHD_add_response_header(r, "Connection", "close");
    return ctl_http_deliver(asked->connection, code, r);
}

/* ---- Connections ----------------------------------------------------------------------------- */

static struct ctl_client *client_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info == NULL ? NULL : info->socket_context;
}

static void client_until(struct MHD_Connection *c, int64_t until_ns)
{
    struct ctl_client *client = client_of(c);

    if (client != NULL)
        client->until_ns = until_ns;
}

static void connected(void *ctx, struct MHD_Connection *c, void **socket_context,
                      enum MHD_ConnectionNotificationCode what)
{
    struct ctl_web *w = ctx;
    struct ctl_client *client = *socket_context;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (client != NULL)
            client->fd = -1;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    for (size_t i = 0; info != NULL && i < CTL_CONNECTIONS_MAX; i++) {
        if (w->clients[i].fd < 0) {
            w->clients[i] = (struct ctl_client){ info->connect_fd, ctl_web_now() + REQUEST_NS };
            *socket_context = &w->clients[i];
            return;
        }
    }
}

int64_t ctl_http_sweep(struct ctl_web *w, int64_t now_ns)
{
    int64_t next_ns = DUE_FOREVER;

    for (size_t i = 0; i < CTL_CONNECTIONS_MAX; i++) {
        struct ctl_client *client = &w->clients[i];

        if (client->fd < 0)
            continue;
        if (client->until_ns <= now_ns) {
            (void)shutdown(client->fd, SHUT_RDWR);
            client->until_ns = DUE_FOREVER;
        }
        if (client->until_ns < next_ns)
            next_ns = client->until_ns;
    }
    return next_ns;
}

static void completed(void *ctx, struct MHD_Connection *c, void **request,
                      enum MHD_RequestTerminationCode how)
{
    struct ctl_web *w = ctx;
    struct ctl_asked *asked = *request;

    (void)how;
    if (asked == NULL)
        return;
    client_until(c, ctl_web_now() + REQUEST_NS);
    for (size_t i = 0; i < CTL_ERRANDS; i++) {
        if (w->asked[i] == asked)
            w->asked[i] = NULL;
    }
    if (asked->made != NULL)
        MHD_destroy_response(asked->made);
    due__ctl_buffer_free(&asked->body);
    free(asked);
    *request = NULL;
}

/* ---- Errands --------------------------------------------------------------------------------- */

/* A place that is free.  0: none, or as many as may be for one queue are at work, of which one is a
 * change: those of a store that is away do not hold up the others. */
static size_t free_place(const struct ctl_web *w, const struct ctl_look *look, bool change)
{
    size_t most = change ? 1 : CTL_READS;
    size_t at = 0;
    size_t n = 0;

    for (size_t i = CTL_QUEUES; i < CTL_ERRANDS; i++) {
        const struct ctl_errand *e = &w->errands[i];

        if (e->pid == 0)
            at = i;
        else if (e->look == look && e->writes == change)
            n++;
    }
    return n >= most ? 0 : at;
}

enum MHD_Result ctl_http_begin(struct ctl_asked *asked, ctl_errand_body *body, const void *ctx)
{
    struct ctl_web *w = asked->web;
    const struct ctl_look *look = &asked->queue->look;
    size_t place = free_place(w, look, body == ctl_change);

    if (place == 0)
        return ctl_http_refuse(asked, MHD_HTTP_SERVICE_UNAVAILABLE,
                               "others are being answered: try again\n");
    if (!ctl_errand_start(&w->errands[place], body, look, ctx,
                          body == ctl_change ? WRITE_NS : READ_NS))
        return ctl_http_refuse(asked, MHD_HTTP_INTERNAL_SERVER_ERROR,
                               "no process can be made for this\n");
    w->asked[place] = asked;
    asked->begun = true;
    client_until(asked->connection, DUE_FOREVER);
    MHD_suspend_connection(asked->connection);
    return MHD_YES;
}

void ctl_http_answer(struct ctl_web *w, size_t place)
{
    struct ctl_errand *e = &w->errands[place];
    struct ctl_asked *asked = w->asked[place];
    struct ctl_watched *q = ctl_watched_of(w, e);

    w->asked[place] = NULL;
    if (e->writes && q->look_ns != DUE_FOREVER)
        q->look_ns = ctl_web_now(); /* so that the change is seen, however long a look takes */
    if (asked != NULL) {
        asked->made = w->site->made(w, e, &asked->code);
        client_until(asked->connection, ctl_web_now() + REQUEST_NS);
        MHD_resume_connection(asked->connection);
    }
    ctl_errand_free(e);
}

/* ---- A request ------------------------------------------------------------------------------- */

const char *ctl_http_header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

unsigned ctl_http_refused(struct ctl_asked *asked, const char **why)
{
    const struct ctl_web *w = asked->web;
    const char *host = ctl_http_header(asked->connection, "Host");
    const char *origin = ctl_http_header(asked->connection, "Origin");

    *why = "this machine is asked under a name that is not its own\n";
    if (host == NULL || !ctl_host_is_ours(host, w->address, w->port))
        return MHD_HTTP_MISDIRECTED_REQUEST;
    *why = "another page asks\n";
    if (origin != NULL && !ctl_origin_is_ours(origin, w->address, w->port))
        return MHD_HTTP_FORBIDDEN;
    return 0;
}

/* The head is there.  A body is read first: then it is called again. */
static enum MHD_Result first_call(struct ctl_web *w, struct MHD_Connection *c, const char *url,
                                  const char *method, void **request)
{
    struct ctl_asked *asked = calloc(1, sizeof *asked);

    if (asked == NULL)
        return MHD_NO;
    asked->web = w;
    asked->queue = &w->queues[0];
    asked->connection = c;
    *request = asked;
    return w->site->ask(asked, method, url);
}

static enum MHD_Result requested(void *ctx, struct MHD_Connection *c, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_len, void **request)
{
    struct ctl_asked *asked = *request;

    (void)version;
    if (asked == NULL)
        return first_call(ctx, c, url, method, request);
    if (*upload_len > 0) {
        if (asked->body.len + *upload_len > asked->body_len)
            return MHD_NO;
        due__ctl_buffer_add(&asked->body, upload, *upload_len);
        *upload_len = 0;
        return asked->body.failed ? MHD_NO : MHD_YES;
    }
    if (asked->made != NULL) {
        struct MHD_Response *made = asked->made;

        asked->made = NULL;
        return ctl_http_deliver(c, asked->code, made);
    }
    if (asked->begun || asked->body_len == 0 || asked->body.len < asked->body_len)
        return MHD_NO;
    return asked->web->site->read(asked);
}

/* ---- Opened and closed ----------------------------------------------------------------------- */

bool ctl_http_open(struct ctl_web *w, int listen_fd)
{
    for (size_t i = 0; i < CTL_CONNECTIONS_MAX; i++)
        w->clients[i].fd = -1;
    w->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, requested, w,
        MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_NOTIFY_CONNECTION, connected, w,
        MHD_OPTION_NOTIFY_COMPLETED, completed, w, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CTL_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CTL_HEAD_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (w->daemon == NULL)
        fputs("duectl: nothing can be served: libmicrohttpd does not start\n", stderr);
    return w->daemon != NULL;
}

/* The library must not be stopped while a connection is suspended. */
void ctl_http_close(struct ctl_web *w)
{
    for (size_t i = 0; i < CTL_ERRANDS; i++) {
        if (w->asked[i] != NULL)
            MHD_resume_connection(w->asked[i]->connection);
    }
    (void)MHD_run(w->daemon);
    MHD_stop_daemon(w->daemon);
}
