/* extra.h - what only some jobs have, in one line: `.more = EXTRA(.key = "k", .key_len = 1)`.
 *
 * It lives as long as the block that it stands in.
 */
#ifndef EXTRA_H
#define EXTRA_H

#include "due/job.h"

#define EXTRA(...) (&(due_extra){ DUE_EXTRA_INIT, __VA_ARGS__ })

#endif
