/* write.h - batches of changes. */
#ifndef DUE__REDIS_WRITE_H
#define DUE__REDIS_WRITE_H

#include "redis/read/read.h"

/* ---- format.c */
/* Write the batch @number into the link's buffer, with the guard behind it. */
int due__format_batch(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);
/* The same of removals only, or of nothing but settings of topics, as a script. */
int due__format_script(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);
/* The same of nothing but its number. */
void due__format_number(struct due__redis *s, uint64_t number);
/* The batch @number has landed (@entered: its new topics too), or is formatted anew. */
void due__format_over(struct due__redis *s, uint64_t number, bool entered);

/* ---- script.c */
void due__script_remove(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);

/* ---- topic_settings.c */
bool due__settings_only(const due_change *changes, size_t n);
void due__settings_write(struct due__redis *s, const due_change *changes, size_t n);
void due__script_settings(struct due__redis *s, const due_change *changes, size_t n,
                          uint64_t number);

/* ---- batch.c */
/* What commit() refuses at once, and else the batch's bytes into the link. */
int due__redis_format(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);
/* Send a batch that was formatted.  As due__flight_start(). */
int due__redis_launch(struct due__redis *s, uint64_t number, bool script, int64_t until_ns);
int due__redis_commit(struct due__redis *s, const due_change *changes, size_t n, uint64_t number,
                      int64_t until_ns);

/* ---- pipeline.c */
/* Format it behind the one in the air.  DUE_EAGAIN: not now. */
int due__redis_prepare(struct due__redis *s, const due_change *changes, size_t n, uint64_t number);
/* Send it.  0; DUE_EAGAIN: nothing was sent. */
int due__redis_send(struct due__redis *s, uint64_t number, int64_t until_ns);

#endif
