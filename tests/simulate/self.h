/* self.h - is what is wrong found, and is the same seed the same run? */
#ifndef SIMULATE_SELF_H
#define SIMULATE_SELF_H

#include <stdbool.h>

/* Prints a line for each fault that is planted. */
bool self_test(void);

#endif
