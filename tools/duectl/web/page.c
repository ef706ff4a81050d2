/* page.c - what a browser asks for: what is refused, answered at once, or takes an errand.
 *
 *     GET  /TOKEN/ and its files   the page of the first queue, and of another: /TOKEN/NUMBER/
 *     GET  /TOKEN/api/look?after=N the samples behind number N, topics, the oldest, queues
 *     GET  /TOKEN/api/jobs?topic=&state=&find=&from=&most=   a page of jobs
 *     GET  /TOKEN/api/job?id=      one, with more of its payload
 *     POST /TOKEN/api/change       a request as on a control socket: kick, drop, kick_all, drop_all
 *
 * Every answer of the last four is lines of JSON, the last of which is {"end":STATUS,"said":"..."}:
 * the exit status, and what went wrong.
 */
#include "web/http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Answers --------------------------------------------------------------------------------- */

/* The last line goes behind @lines. */
static struct MHD_Response *lines_of(struct due__ctl_buffer *lines, int status,
                                     const struct due__ctl_buffer *said)
{
    due__ctl_buffer_text(lines, "{\"end\":%d,\"said\":", status);
    ctl_said_dump(lines, said);
    due__ctl_buffer_text(lines, "}\n");
    if (lines->failed)
        return NULL;
    return ctl_http_response(lines->bytes, lines->len, "application/x-ndjson; charset=utf-8");
}

static struct MHD_Response *made(struct ctl_web *w, struct ctl_errand *e, unsigned *code)
{
    bool fine = e->status == CTL_FINE || e->status == CTL_FAULTS;

    (void)w;
    *code = fine ? MHD_HTTP_OK : MHD_HTTP_BAD_GATEWAY;
    return lines_of(&e->out, e->status, &e->said);
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
        return ctl_http_refuse(asked, MHD_HTTP_BAD_REQUEST, "these make no sense\n");
    return ctl_http_begin(asked, ctl_page, &page);
}

static enum MHD_Result answer_job(struct ctl_asked *asked)
{
    const char *id = argument(asked->connection, "id");
    struct ctl_page page = { .has_id = true, .whole = true };

    if (id == NULL || due_id_parse(id, &page.id) != 0)
        return ctl_http_refuse(asked, MHD_HTTP_BAD_REQUEST, "an id has 32 hexadecimal digits\n");
    return ctl_http_begin(asked, ctl_page, &page);
}

static enum MHD_Result answer_look(struct ctl_asked *asked)
{
    const struct ctl_watched *q = asked->queue;
    const char *after = argument(asked->connection, "after");
    struct due__ctl_buffer lines = { 0 };
    uint64_t number = 0;

    if (after != NULL && !read_number(after, &number))
        return ctl_http_refuse(asked, MHD_HTTP_BAD_REQUEST, "this is no number\n");
    due__ctl_buffer_text(
        &lines, "{\"queue\":\"%s\",\"number\":%d,\"store\":%s,\"control\":%s,\"writes\":%s}\n",
        q->look.queue, (int)(q - asked->web->queues) + 1, q->look.url != NULL ? "true" : "false",
        q->look.control != NULL ? "true" : "false", q->look.writes ? "true" : "false");
    ctl_watched_write(asked->web, &lines);
    ctl_history_write(&q->history, number, &lines);
    struct MHD_Response *r = lines_of(&lines, q->history.status, &q->history.said);
    due__ctl_buffer_free(&lines);
    return ctl_http_deliver(asked->connection, MHD_HTTP_OK, r);
}

static enum MHD_Result answer_file(struct ctl_asked *asked, const char *name)
{
    for (size_t i = 0; i < ctl_web_file_count; i++) {
        const struct ctl_web_file *file = &ctl_web_files[i];

        if (strcmp(file->name, name) == 0)
            return ctl_http_deliver(asked->connection, MHD_HTTP_OK,
                                    ctl_http_response(file->bytes, file->len, file->type));
    }
    return ctl_http_refuse(asked, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

static enum MHD_Result answer_get(struct ctl_asked *asked, const char *path)
{
    bool of_jobs = strcmp(path, "api/jobs") == 0 || strcmp(path, "api/job") == 0;

    if (strcmp(path, "api/look") == 0)
        return answer_look(asked);
    if (of_jobs && asked->queue->look.url == NULL)
        return ctl_http_refuse(asked, MHD_HTTP_NOT_FOUND,
                               "jobs are not listed without the address of their store\n");
    if (of_jobs)
        return strcmp(path, "api/jobs") == 0 ? answer_jobs(asked) : answer_job(asked);
    return answer_file(asked, path);
}

/* The body is there. */
static enum MHD_Result answer_change(struct ctl_asked *asked)
{
    struct due__ctl_json j = { .line = asked->body.bytes, .len = asked->body.len };
    static struct due__ctl_request request;

    if (!due__ctl_request_read(&request, &j))
        return ctl_http_refuse(asked, MHD_HTTP_BAD_REQUEST, j.fault);
    if (!ctl_change_is_known(&request))
        return ctl_http_refuse(asked, MHD_HTTP_FORBIDDEN,
                               "the page can kick and drop, and nothing else\n");
    return ctl_http_begin(asked, ctl_change, &request);
}

/* ---- What is refused ------------------------------------------------------------------------- */

/* A change is asked for by our own page, and can be long only as it says. */
static unsigned refused_post(struct ctl_asked *asked, const char *path, const char **why)
{
    struct MHD_Connection *c = asked->connection;
    const char *type = ctl_http_header(c, "Content-Type");
    const char *length = ctl_http_header(c, "Content-Length");
    uint64_t len = 0;

    *why = "nothing can be changed there\n";
    if (strcmp(path, "api/change") != 0)
        return MHD_HTTP_NOT_FOUND;
    *why = "nothing can be changed: duectl web was started without --allow-writes\n";
    if (!asked->web->look->writes)
        return MHD_HTTP_FORBIDDEN;
    *why = "a change is asked for by the page itself: no Origin\n";
    if (ctl_http_header(c, "Origin") == NULL)
        return MHD_HTTP_FORBIDDEN;
    *why = "a change is application/json\n";
    if (type == NULL || strcmp(type, "application/json") != 0)
        return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    *why = "how long is it? no Content-Length\n";
    if (length == NULL || !read_number(length, &len))
        return MHD_HTTP_LENGTH_REQUIRED;
    *why = "this is too long\n";
    if (len == 0 || len > DUE__CTL_REQUEST_MAX)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    asked->body_len = (size_t)len;
    return 0;
}

/* Which queue a path names behind the token, as in "/TOKEN/3/api/look", and what is asked for of
 * it; *@path is NULL: a slash is missing at the end.  False: there is no such queue. */
static bool choose(struct ctl_asked *asked, const char *url, const char **path)
{
    struct ctl_cursor c = { .text = url, .len = strlen(url), .at = 1 + CTL_TOKEN };
    int64_t number = 1;

    if (c.at + 1 < c.len && c.text[c.at + 1] >= '0' && c.text[c.at + 1] <= '9') {
        c.at++;
        (void)ctl_digits_read(&c, 3, &number);
    }
    *path = c.text[c.at] == '/' ? c.text + c.at + 1 : NULL;
    if (number < 1 || (size_t)number > asked->web->queue_count || (*path == NULL && c.at < c.len))
        return false;
    asked->queue = &asked->web->queues[number - 1];
    return true;
}

/* 0, or the code.  *@path is what is asked for of its queue. */
static unsigned refused(struct ctl_asked *asked, const char *method, const char *url,
                        const char **path, const char **why)
{
    const struct ctl_web *w = asked->web;
    unsigned code = ctl_http_refused(asked, why);

    if (code != 0)
        return code;
    *why = "the page has an address that duectl web has printed, with a token in it\n";
    if (!ctl_token_opens(w->token, url))
        return MHD_HTTP_FORBIDDEN;
    *why = "there is no such queue\n";
    if (!choose(asked, url, path))
        return MHD_HTTP_NOT_FOUND;
    if (strcmp(method, "POST") == 0)
        return refused_post(asked, *path == NULL ? "" : *path, why);
    *why = "GET, HEAD or POST\n";
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ? 0
                                                                     : MHD_HTTP_METHOD_NOT_ALLOWED;
}

/* ---- What is served -------------------------------------------------------------------------- */

/* To where the slash is. */
static enum MHD_Result redirect(struct ctl_asked *asked, const char *url)
{
    struct MHD_Response *r = ctl_http_response("", 0, "text/plain; charset=utf-8");
    char to[CTL_TOKEN + 8];

    snprintf(to, sizeof to, "%s/", url);
    if (r != NULL)
        (void)MHD_add_response_header(r, "Location", to);
    return ctl_http_deliver(asked->connection, MHD_HTTP_FOUND, r);
}

/* The head is there. */
static enum MHD_Result ask(struct ctl_asked *asked, const char *method, const char *url)
{
    const char *why;
    const char *path;
    unsigned code = refused(asked, method, url, &path, &why);

    if (code != 0)
        return ctl_http_refuse(asked, code, why);
    if (asked->body_len > 0)
        return MHD_YES;
    return path == NULL ? redirect(asked, url) : answer_get(asked, path);
}

static bool opened(struct ctl_web *w)
{
    if (!ctl_token_make(w->token)) {
        fprintf(stderr, "duectl: no token can be made: %s\n", strerror(errno));
        return false;
    }
    return printf("http://%s:%d/%s/\n", w->address, w->port, w->token) > 0 && fflush(stdout) == 0;
}

static const struct ctl_site page = {
    .methods = "GET, HEAD, POST",
    .looks = true,
    .opened = opened,
    .ask = ask,
    .read = answer_change,
    .made = made,
};

int ctl_web_serve(struct ctl_look *look)
{
    return ctl_site_serve(&page, look);
}
