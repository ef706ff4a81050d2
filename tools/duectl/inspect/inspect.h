/* inspect.h - the store of the options, and the commands that look into one. */
#ifndef DUECTL_INSPECT_H
#define DUECTL_INSPECT_H

#include "base/base.h"

/* The store that the options ask for; NULL: said why there is none. */
due_store *ctl_store_new(const struct ctl_options *options);
void ctl_store_free(due_store *store); /* one that no queue took over */

/* The path that a store's name means, if it is a file: what has no colon before its first slash, or
 * begins with "sqlite:".  NULL: it is none. */
const char *ctl_file_of(const char *store);
due_store *ctl_file_store(const struct ctl_options *options);   /* as ctl_store_new() */
due_store *ctl_server_store(const struct ctl_options *options); /* likewise */

/* ---- The command line ------------------------------------------------------------------------ */

struct ctl_look {
    const char *command;
    const char *url; /* or a path */
    const char *queue;
    bool help;
    bool list;                  /* restore */
    bool repair;                /* verify */
    bool json;                  /* ls */
    const char *topic;          /* ls: only this; NULL: all */
    const char *state;          /* ls: likewise */
    uint64_t limit;             /* ls */
    bool salvage;               /* export */
    bool again;                 /* import */
    bool check;                 /* import: no store is needed */
    enum due_durability assume; /* doctor */
};

/* The store of a command that is to own the queue; @must_exist: one that is not there is not made.
 * NULL: said why not, and *@status is the exit status. */
due_store *ctl_store_of(const struct ctl_look *look, bool must_exist, int *status);
due_store *ctl_file_store_of(const char *path, bool must_exist, int *status);
due_store *ctl_server_store_of(const struct ctl_look *look, bool must_exist, int *status);

/* An option that one command has besides --queue, --store and --help. */
struct ctl_look_option {
    const char *name;
    bool has_value;
    bool (*take)(struct ctl_look *look, const char *value); /* false: said what is wrong */
};

/* Read the arguments: those options, @n of its own, and the URL.  False: said what is wrong. */
bool ctl_look_read(struct ctl_look *look, int argc, char **argv, const struct ctl_look_option *own,
                   size_t n);
/* Say what is wrong with @value, and where more is said.  Always false. */
bool ctl_look_wrong(const struct ctl_look *look, const char *what, const char *value);

/* ---- Jobs ------------------------------------------------------------------------------------ */

/* Shows each job by topic and time, then the dead; in a queue in use one may be shown twice, or not
 * at all.  @rc is 0, or why it cannot be read.  The visit answers false to end it.  Each answers an
 * exit status. */
typedef bool ctl_jobs_visit(void *ctx, due_id id, int rc, const due_record *record);
int ctl_file_jobs(const char *path, ctl_jobs_visit *visit, void *ctx);
/* Of a file whose pages are damaged, also the kept keys; *@all: whatever else is lost was told.  A
 * visit is told
 * of each job whose id is known, with an error if nothing else is. */
int ctl_file_salvage(const char *path, ctl_jobs_visit *visit, due_store_visit_key *visit_key,
                     void *ctx, bool *all);
int ctl_server_jobs(const struct ctl_look *look, ctl_jobs_visit *visit, void *ctx);

/* ---- The commands: they answer their exit status; @argv[0] is the word ----------------------- */

int ctl_restore(int argc, char **argv);
int ctl_doctor(int argc, char **argv);
int ctl_verify(int argc, char **argv);

/* Of a file. */
int ctl_file_restore(const char *path, const struct ctl_look *look);
int ctl_file_verify(const char *path, const struct ctl_look *look);
int ctl_file_doctor(const char *path, const struct ctl_look *look);

/* Of a server. */
int ctl_server_restore(const struct ctl_look *look);
int ctl_server_verify(const struct ctl_look *look);
int ctl_server_doctor(const struct ctl_look *look);

#endif
