/* reply.h - what a reply is: its shape, and what an error means. */
#ifndef DUE__REDIS_REPLY_H
#define DUE__REDIS_REPLY_H

#include <hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Shapes.  Of NULL all are false. */
bool due__reply_is_text(const redisReply *r);
bool due__reply_is_array(const redisReply *r, size_t elements);
/* An array of texts; or of what fields of a hash are: texts, or nothing. */
bool due__reply_is_texts(const redisReply *r);
bool due__reply_is_fields(const redisReply *r, size_t elements);
/* A number of decimal digits and nothing else. */
bool due__reply_digits(const char *text, size_t len, uint64_t *number);

/* ---- Errors */
/* What an error means. */
enum due__reply_class {
    DUE__REPLY_FINE,      /* no error */
    DUE__REPLY_AGAIN,     /* LOADING, BUSY, TRYAGAIN, CLUSTERDOWN, NOREPLICAS, max clients: later */
    DUE__REPLY_READONLY,  /* READONLY, UNBLOCKED: a replica, or it became one */
    DUE__REPLY_ELSEWHERE, /* MOVED, ASK: not this server, or not now */
    DUE__REPLY_FULL,      /* OOM */
    DUE__REPLY_DISK,      /* MISCONF */
    DUE__REPLY_DENIED,    /* NOAUTH, WRONGPASS, NOPERM; or a command was renamed or disabled */
    DUE__REPLY_NOSCRIPT,  /* */
    DUE__REPLY_UNABLE,    /* no script may write once it has read the clock: see share/script.c */
    DUE__REPLY_ABORTED,   /* EXECABORT: look at the queued commands' replies */
    DUE__REPLY_WRONG      /* WRONGTYPE and all others: a bug, or somebody else's keys */
};
enum due__reply_class due__reply_classify(const redisReply *reply);
/* DUE__REPLY_DENIED: the server does not know the command. */
bool due__reply_is_unknown(const redisReply *reply);
/* DUE__REPLY_WRONG: a key holds another type than the command is for. */
bool due__reply_is_other_type(const redisReply *reply);
/* The command that an error names between quotes: letters only; "": none. */
#define DUE__REPLY_COMMAND 24
void due__reply_command(const redisReply *reply, char name[DUE__REPLY_COMMAND]);

#endif
