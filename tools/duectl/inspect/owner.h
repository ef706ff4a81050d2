/* owner.h - an owner that is asked on its control socket: docs/control.md.
 *
 *   owner.c       one request
 *   owner_jobs.c  jobs that it tells of; its queues
 */
#ifndef DUECTL_OWNER_H
#define DUECTL_OWNER_H

#include "inspect/inspect.h"
#include "wire/request.h"

/* A request of this verb, for the queue of the options. */
void ctl_owner_begin(struct due__ctl_request *r, const struct ctl_look *look,
                     enum due__ctl_verb verb);

/* Give the lines of the answer, without line feeds, to @line, which answers false if one makes no
 * sense.  The code at its end, or DUE_ESTORE: said what went wrong. */
typedef bool ctl_answer_take(void *ctx, char *line, size_t len);
int ctl_owner_ask(const char *path, const struct due__ctl_request *request, ctl_answer_take *take,
                  void *ctx);

/* Read a line of an answer: @take reads what stands behind each name, or passes it over.  False: it
 * makes no sense.  A later owner may say more than is known here. */
typedef bool ctl_field_take(void *ctx, struct due__ctl_json *j, const char *name, size_t len);
bool ctl_owner_line(char *line, size_t len, ctl_field_take *take, void *ctx);
bool ctl_owner_pass(struct due__ctl_json *j);
/* The text that it has under this name, in place. */
bool ctl_owner_text(char *line, size_t len, const char *name, char **text, size_t *text_len);

/* Say that what has come from there makes no sense.  DUE_ESTORE. */
int ctl_owner_senseless(const char *path);

/* Is there an owner at that socket?  0, or an exit status: said why not. */
int ctl_owner_reach(const char *path);

/* As ctl_jobs() and ctl_jobs_named(), of those that it tells of: none is on a lease, and they come
 * in no order. */
int ctl_owner_jobs(const struct ctl_look *look, ctl_jobs_visit *visit, void *ctx);
int ctl_owner_jobs_named(const struct ctl_look *look, const due_id *ids, size_t n,
                         ctl_jobs_visit *visit, void *ctx);

/* As ctl_processes(): each queue behind the socket, of the process that has it. */
int ctl_owner_queues(const struct ctl_look *look, ctl_process_visit *visit, void *ctx);

#endif
