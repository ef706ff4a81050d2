/* figures_file.h - the file of due/figures.h, as the one who writes it has it. */
#ifndef DUE__FIGURES_FILE_H
#define DUE__FIGURES_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "due/figures.h"

/* The head, and both sets. */
#define DUE__FIGURES_BYTES (sizeof(struct due_figures_head) + 2 * sizeof(struct due_figures))

struct due__figures_file {
    struct due_figures_head *head; /* I  the mapping: A  B1 of figures_file.c */
    int fd;                        /* I  open as long as the lock is to be held */
    char path[PATH_MAX];           /* I */
};

/* Make it, or take over one that nobody writes.  As due_figures_open(). */
int due__figures_file_open(struct due__figures_file *f, const char *path);

/* Write a set, of which only what is in use is looked at: it gets the next number.  False: somebody
 * has made the file shorter. */
bool due__figures_file_put(struct due__figures_file *f, struct due_figures *set);

/* Let go of it; @remove: and remove it, if it is still there. */
void due__figures_file_close(struct due__figures_file *f, bool remove);

/* A set into one of the two places that lie behind each other at @sets, then its number. */
void due__figures_put(uint64_t *number, uint64_t *sets, size_t set_words, const void *set,
                      size_t used_words, uint64_t set_number);

#endif
