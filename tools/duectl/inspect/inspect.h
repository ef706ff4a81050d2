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
due_store *ctl_file_store(const struct ctl_options *options); /* as ctl_store_new() */

/* `duectl restore`, `verify`, `doctor` of a file: the exit status.  Nothing is written. */
int ctl_file_restore(const char *path, bool each);
int ctl_file_verify(const char *path);
int ctl_file_doctor(const char *path);

/* `duectl restore`, `doctor`, `verify`: the exit status; @argv[0] is that word. */
int ctl_restore(int argc, char **argv);
int ctl_doctor(int argc, char **argv);
int ctl_verify(int argc, char **argv);

#endif
