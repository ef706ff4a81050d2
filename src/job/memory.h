/* memory.h - the journal of a queue without a store. */
#ifndef DUE__MEMORY_H
#define DUE__MEMORY_H

#include "queue/journal.h"

extern const struct due__journal due__memory_journal;

#endif
