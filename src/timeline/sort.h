/* sort.h - a few hundred slots in order. */
#ifndef DUE__SORT_H
#define DUE__SORT_H

#include <stddef.h>

#include "mem/slot.h"

/* Sorts @n slots; @spare has room for as many. */
void due__sort(struct due__slot *slot, size_t n, struct due__slot *spare);

#endif
