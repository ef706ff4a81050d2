/* Each public function runs on the smallest stack that a thread can have, and so do the threads of
 * the library. */
#define _GNU_SOURCE
#include "lab/stack_script.h"

#ifndef STACK_SANITIZED
Test(stack, of_16_kib_is_enough_for_every_call, .timeout = 60)
{
    threads_are_small();
    for (int mode = 0; mode < 3; mode++)
        on_a_small_stack((enum due_proxies)mode, NULL);
}

Test(stack, of_16_kib_is_enough_with_a_store, .timeout = 60)
{
    struct memory_disk *disk = memory_disk_new(NULL);

    threads_are_small();
    on_a_small_stack(DUE_PROXIES_ADAPTIVE, memory_store_new(disk));
    memory_disk_free(disk);
}
#endif
