/* http.c - requests of a browser: what is refused, what is answered at once, what takes an errand.
 *
 *     GET  /TOKEN/ and its files   the page
 *     GET  /TOKEN/api/look?after=N the samples behind number N, topics, the oldest
 *     GET  /TOKEN/api/jobs?topic=&state=&find=&from=&most=   a page of jobs
 *     GET  /TOKEN/api/job?id=      one, with more of its payload
 *     POST /TOKEN/api/change       a request as on a control socket: kick, drop, kick_all, drop_all
 *
 * Every answer of the last four is lines of JSON, the last of which is {"end":STATUS,"said":"..."}:
 * the exit status, and what went wrong.  A request is looked at once its head is there, and a
 * refused one is answered then.  One that takes an errand is suspended until that is over.
 *
 * A connection has REQUEST_NS for each request from its first byte to the last of the answer, apart
 * from what the errand takes, however it drips; and nothing it sends is larger than it may be.
 */
#include "web/web.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define REQUEST_NS DUE_S(20)
#define READ_NS    DUE_S(60) /* for an errand */
#define WRITE_NS   DUE_S(30)

enum { IDLE_SECONDS = 10 };

/* A request that is being read, or answered. */
struct ctl_asked {
    struct ctl_web *web;
    struct MHD_Connection *connection;
    struct ctl_buffer body;
    size_t body_len;           /* that there will be; 0: it has none */
    bool begun;                /* its errand: it is not begun again */
    struct MHD_Response *made; /* NULL: not yet */
    unsigned code;             /* of it */
};

/* ---- Answers --------------------------------------------------------------------------------- */

static struct MHD_Response *response_of(const void *bytes, size_t len, const char *type)
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

/* MHD_NO ends the connection. */
static enum MHD_Result deliver(struct MHD_Connection *c, unsigned code, struct MHD_Response *r)
{
    if (r == NULL)
        return MHD_NO;
    enum MHD_Result rc = MHD_queue_response(c, code, r);
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned code, const char *why)
{
    struct MHD_Response *r = response_of(why, strlen(why), "text/plain; charset=utf-8");

    if (r != NULL && code == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(r, "Allow", "GET, HEAD, POST");
    if (r != NULL)
        (void)MHD_add_response_header(r, "Connection", "close");
    return deliver(c, code, r);
}

/* The last line goes behind @lines. */
static struct MHD_Response *lines_of(struct ctl_buffer *lines, int status,
                                     const struct ctl_buffer *said)
{
    size_t len = said->len;

    while (len > 0 && said->bytes[len - 1] == '\n')
        len--;
    ctl_buffer_text(lines, "{\"end\":%d,\"said\":", status);
    ctl_dump_shown(lines, len == 0 ? "" : said->bytes, len);
    ctl_buffer_text(lines, "}\n");
    if (lines->failed)
        return NULL;
    return response_of(lines->bytes, lines->len, "application/x-ndjson; charset=utf-8");
}

static unsigned code_of(int status)
{
    return status == CTL_FINE || status == CTL_FAULTS ? MHD_HTTP_OK : MHD_HTTP_BAD_GATEWAY;
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
    ctl_buffer_free(&asked->body);
    free(asked);
    *request = NULL;
}

/* ---- Errands --------------------------------------------------------------------------------- */

/* A place that is free; one stays so for a change, of which there is one at a time.  0: none. */
static size_t free_place(const struct ctl_web *w, bool change)
{
    size_t at = 0;
    size_t n = 0;

    for (size_t i = 1; i < CTL_ERRANDS; i++) {
        if (w->errands[i].pid != 0) {
            n++;
            if (change && w->errands[i].writes)
                return 0;
        } else {
            at = i;
        }
    }
    return !change && n + 1 >= CTL_ERRANDS - 1 ? 0 : at;
}

static enum MHD_Result begin(struct ctl_asked *asked, ctl_errand_body *body, const void *ctx)
{
    struct ctl_web *w = asked->web;
    size_t place = free_place(w, body == ctl_change);

    if (place == 0)
        return refuse(asked->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "others are being answered: try again\n");
    if (!ctl_errand_start(&w->errands[place], body, w->look, ctx,
                          body == ctl_change ? WRITE_NS : READ_NS))
        return refuse(asked->connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
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

    w->asked[place] = NULL;
    if (e->writes && w->look_ns != DUE_FOREVER)
        w->look_ns = ctl_web_now(); /* so that the change is seen, however long a look takes */
    if (asked != NULL) {
        asked->made = lines_of(&e->out, e->status, &e->said);
        asked->code = code_of(e->status);
        client_until(asked->connection, ctl_web_now() + REQUEST_NS);
        MHD_resume_connection(asked->connection);
    }
    ctl_errand_free(e);
}

/* ---- What is asked --------------------------------------------------------------------------- */

static const char *argument(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, name);
}

static bool read_number(const char *text, uint64_t *value)
{
    struct ctl_cursor c = { .text = text, .len = strlen(text) };
    int64_t number = 0;

    if (ctl_digits_read(&c, 18, &number) == 0 || c.at < c.len)
        return false;
    *value = (uint64_t)number;
    return true;
}

static bool copy_text(char *to, size_t room, const char *text)
{
    size_t len = text == NULL ? 0 : strlen(text);

    if (len >= room)
        return false;
    memcpy(to, len == 0 ? "" : text, len);
    to[len] = '\0';
    return true;
}

/* False: there is something that makes no sense. */
static bool read_page(struct MHD_Connection *c, struct ctl_page *page)
{
    const char *topic = argument(c, "topic");
    const char *state = argument(c, "state");
    const char *from = argument(c, "from");
    const char *most = argument(c, "most");

    *page = (struct ctl_page){ .has_topic = topic != NULL, .most = CTL_PAGE_JOBS };
    if (!copy_text(page->topic, sizeof page->topic, topic) ||
        !copy_text(page->state, sizeof page->state, state) ||
        !copy_text(page->find, sizeof page->find, argument(c, "find")))
        return false;
    if ((from != NULL && !read_number(from, &page->from)) ||
        (most != NULL && !read_number(most, &page->most)))
        return false;
    page->has_id = due_id_parse(page->find, &page->id) == 0;
    return page->most > 0 && page->most <= CTL_PAGE_JOBS;
}

static enum MHD_Result answer_jobs(struct ctl_asked *asked)
{
    struct ctl_page page;

    if (!read_page(asked->connection, &page))
        return refuse(asked->connection, MHD_HTTP_BAD_REQUEST, "these make no sense\n");
    return begin(asked, ctl_page, &page);
}

static enum MHD_Result answer_job(struct ctl_asked *asked)
{
    const char *id = argument(asked->connection, "id");
    struct ctl_page page = { .has_id = true, .whole = true };

    if (id == NULL || due_id_parse(id, &page.id) != 0)
        return refuse(asked->connection, MHD_HTTP_BAD_REQUEST, "an id has 32 hexadecimal digits\n");
    return begin(asked, ctl_page, &page);
}

static enum MHD_Result answer_look(struct ctl_asked *asked)
{
    const struct ctl_web *w = asked->web;
    const char *after = argument(asked->connection, "after");
    struct ctl_buffer lines = { 0 };
    uint64_t number = 0;

    if (after != NULL && !read_number(after, &number))
        return refuse(asked->connection, MHD_HTTP_BAD_REQUEST, "this is no number\n");
    ctl_buffer_text(&lines, "{\"queue\":\"%s\",\"store\":%s,\"control\":%s,\"writes\":%s}\n",
                    w->look->queue, w->look->url != NULL ? "true" : "false",
                    w->look->control != NULL ? "true" : "false",
                    w->look->writes ? "true" : "false");
    ctl_history_write(&w->history, number, &lines);
    struct MHD_Response *r = lines_of(&lines, w->history.status, &w->history.said);
    ctl_buffer_free(&lines);
    return deliver(asked->connection, MHD_HTTP_OK, r);
}

static enum MHD_Result answer_file(struct ctl_asked *asked, const char *name)
{
    for (size_t i = 0; i < ctl_web_file_count; i++) {
        const struct ctl_web_file *file = &ctl_web_files[i];

        if (strcmp(file->name, name) == 0)
            return deliver(asked->connection, MHD_HTTP_OK,
                           response_of(file->bytes, file->len, file->type));
    }
    return refuse(asked->connection, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

static enum MHD_Result answer_get(struct ctl_asked *asked, const char *path)
{
    bool of_jobs = strcmp(path, "api/jobs") == 0 || strcmp(path, "api/job") == 0;

    if (strcmp(path, "api/look") == 0)
        return answer_look(asked);
    if (of_jobs && asked->web->look->url == NULL)
        return refuse(asked->connection, MHD_HTTP_NOT_FOUND,
                      "jobs are not listed without the address of their store\n");
    if (of_jobs)
        return strcmp(path, "api/jobs") == 0 ? answer_jobs(asked) : answer_job(asked);
    return answer_file(asked, path);
}

/* The body is there. */
static enum MHD_Result answer_change(struct ctl_asked *asked)
{
    struct ctl_json j = { .line = asked->body.bytes, .len = asked->body.len };
    static struct ctl_request request;

    if (!ctl_request_read(&request, &j))
        return refuse(asked->connection, MHD_HTTP_BAD_REQUEST, j.fault);
    if (!ctl_change_is_known(&request))
        return refuse(asked->connection, MHD_HTTP_FORBIDDEN,
                      "the page can kick and drop, and nothing else\n");
    return begin(asked, ctl_change, &request);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static const char *header(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* A change is asked for by our own page, and can be long only as it says. */
static unsigned refused_post(struct ctl_asked *asked, const char *path, const char **why)
{
    struct MHD_Connection *c = asked->connection;
    const char *type = header(c, "Content-Type");
    const char *length = header(c, "Content-Length");
    uint64_t len = 0;

    *why = "nothing can be changed there\n";
    if (strcmp(path, "api/change") != 0)
        return MHD_HTTP_NOT_FOUND;
    *why = "nothing can be changed: duectl web was started without --allow-writes\n";
    if (!asked->web->look->writes)
        return MHD_HTTP_FORBIDDEN;
    *why = "a change is asked for by the page itself: no Origin\n";
    if (header(c, "Origin") == NULL)
        return MHD_HTTP_FORBIDDEN;
    *why = "a change is application/json\n";
    if (type == NULL || strcmp(type, "application/json") != 0)
        return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    *why = "how long is it? no Content-Length\n";
    if (length == NULL || !read_number(length, &len))
        return MHD_HTTP_LENGTH_REQUIRED;
    *why = "this is too long\n";
    if (len == 0 || len > CTL_REQUEST_MAX)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    asked->body_len = (size_t)len;
    return 0;
}

/* 0, or the code. */
static unsigned refused(struct ctl_asked *asked, const char *method, const char *url,
                        const char **why)
{
    const struct ctl_web *w = asked->web;
    const char *host = header(asked->connection, "Host");
    const char *origin = header(asked->connection, "Origin");

    *why = "this machine is asked under a name that is not its own\n";
    if (host == NULL || !ctl_host_is_ours(host, w->port))
        return MHD_HTTP_MISDIRECTED_REQUEST;
    *why = "another page asks\n";
    if (origin != NULL && !ctl_origin_is_ours(origin, w->port))
        return MHD_HTTP_FORBIDDEN;
    *why = "the page has an address that duectl web has printed, with a token in it\n";
    if (!ctl_token_opens(w->token, url))
        return MHD_HTTP_FORBIDDEN;
    if (strcmp(method, "POST") == 0)
        return refused_post(asked, url + 1 + CTL_TOKEN + (url[1 + CTL_TOKEN] == '/'), why);
    *why = "GET, HEAD or POST\n";
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ? 0
                                                                     : MHD_HTTP_METHOD_NOT_ALLOWED;
}

/* ---- A request ------------------------------------------------------------------------------- */

static enum MHD_Result redirect(struct ctl_asked *asked)
{
    struct MHD_Response *r = response_of("", 0, "text/plain; charset=utf-8");
    char to[CTL_TOKEN + 3];

    snprintf(to, sizeof to, "/%s/", asked->web->token);
    if (r != NULL)
        (void)MHD_add_response_header(r, "Location", to);
    return deliver(asked->connection, MHD_HTTP_FOUND, r);
}

/* The head is there.  A body is read first: then it is called again. */
static enum MHD_Result first_call(struct ctl_web *w, struct MHD_Connection *c, const char *url,
                                  const char *method, void **request)
{
    struct ctl_asked *asked = calloc(1, sizeof *asked);
    const char *why;

    if (asked == NULL)
        return MHD_NO;
    asked->web = w;
    asked->connection = c;
    *request = asked;
    unsigned code = refused(asked, method, url, &why);
    if (code != 0)
        return refuse(c, code, why);
    if (asked->body_len > 0)
        return MHD_YES;
    return url[1 + CTL_TOKEN] == '\0' ? redirect(asked) : answer_get(asked, url + 2 + CTL_TOKEN);
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
        ctl_buffer_add(&asked->body, upload, *upload_len);
        *upload_len = 0;
        return asked->body.failed ? MHD_NO : MHD_YES;
    }
    if (asked->made != NULL) {
        struct MHD_Response *made = asked->made;

        asked->made = NULL;
        return deliver(c, asked->code, made);
    }
    if (asked->begun || asked->body_len == 0 || asked->body.len < asked->body_len)
        return MHD_NO;
    return answer_change(asked);
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
        fputs("duectl: the page cannot be served: libmicrohttpd does not start\n", stderr);
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
