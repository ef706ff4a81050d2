/* http.h - requests: what http.c does for whatever is served, and what that does for it. */
#ifndef DUECTL_HTTP_H
#define DUECTL_HTTP_H

#include <microhttpd.h>

#include "web/web.h"

/* A request that is being read, or answered. */
struct ctl_asked {
    struct ctl_web *web;
    struct ctl_watched *queue; /* of which it asks; the first, unless it says another */
    struct MHD_Connection *connection;
    struct due__ctl_buffer body;
    size_t body_len;           /* that there will be; 0: it has none */
    bool begun;                /* its errand: it is not begun again */
    struct MHD_Response *made; /* NULL: not yet */
    unsigned code;             /* of it */
};

/* What is served.  MHD_NO ends the connection. */
struct ctl_site {
    const char *methods; /* that it knows, as the header Allow has them */
    bool looks;          /* queues are looked at again and again, first of all before it opens */
    /* It can be reached: say where.  False: said why not. */
    bool (*opened)(struct ctl_web *w);
    /* The head of a request is there: refuse it, answer it, or set @body_len to have that read. */
    enum MHD_Result (*ask)(struct ctl_asked *asked, const char *method, const char *url);
    /* The body is there.  NULL: none is read. */
    enum MHD_Result (*read)(struct ctl_asked *asked);
    /* The answer made of an errand that is over, and its code.  NULL: no memory. */
    struct MHD_Response *(*made)(struct ctl_web *w, struct ctl_errand *e, unsigned *code);
};

/* Serve it until a signal comes: the exit status. */
int ctl_site_serve(const struct ctl_site *site, struct ctl_look *look);

/* A copy of these bytes, with the headers that every answer has.  NULL: no memory. */
struct MHD_Response *ctl_http_response(const void *bytes, size_t len, const char *type);
enum MHD_Result ctl_http_deliver(struct MHD_Connection *c, unsigned code, struct MHD_Response *r);
enum MHD_Result ctl_http_refuse(struct ctl_asked *asked, unsigned code, const char *why);
/* Have it answered by an errand. */
enum MHD_Result ctl_http_begin(struct ctl_asked *asked, ctl_errand_body *body, const void *ctx);

const char *ctl_http_header(struct MHD_Connection *c, const char *name);
/* By its Host or its Origin: the code, or 0. */
unsigned ctl_http_refused(struct ctl_asked *asked, const char **why);

#endif
