/* storeless.c - what is said of servers where the library was built without the Redis store. */
#include "inspect/inspect.h"

#include <stdio.h>

static int missing(void)
{
    fputs("duectl: this duectl was built without hiredis, and so without servers; install "
          "libhiredis-dev and build it again\n",
          stderr);
    return CTL_USAGE;
}

due_store *ctl_server_store(const struct ctl_options *options)
{
    (void)options;
    (void)missing();
    return NULL;
}

due_store *ctl_server_store_of(const struct ctl_look *look, bool must_exist, int *status)
{
    (void)look;
    (void)must_exist;
    *status = missing();
    return NULL;
}

int ctl_server_jobs(const struct ctl_look *look, ctl_jobs_visit *visit, void *ctx)
{
    (void)look;
    (void)visit;
    (void)ctx;
    return missing();
}

int ctl_server_jobs_named(const struct ctl_look *look, const due_id *ids, size_t n,
                          ctl_jobs_visit *visit, void *ctx)
{
    (void)look;
    (void)ids;
    (void)n;
    (void)visit;
    (void)ctx;
    return missing();
}

int ctl_server_is_shared(const struct ctl_look *look, bool *shared)
{
    (void)look;
    (void)shared;
    return missing();
}

int ctl_server_processes(const struct ctl_look *look, ctl_process_visit *visit, void *ctx)
{
    (void)look;
    (void)visit;
    (void)ctx;
    return missing();
}

int ctl_server_evict(const struct ctl_look *look, ctl_evict_done *done, void *ctx)
{
    (void)look;
    (void)done;
    (void)ctx;
    return missing();
}

int ctl_server_held_back(const struct ctl_look *look, ctl_held_back_visit *visit, void *ctx)
{
    (void)look;
    (void)visit;
    (void)ctx;
    return missing();
}

int ctl_server_restore(const struct ctl_look *look)
{
    (void)look;
    return missing();
}

int ctl_server_doctor(const struct ctl_look *look)
{
    (void)look;
    return missing();
}

int ctl_server_verify(const struct ctl_look *look)
{
    (void)look;
    return missing();
}
