/* store.c - the store of a run, of a command that is to own it, or of one that looks into it. */
#include "inspect/inspect.h"

#include <stdio.h>
#include <time.h>

#include "due/store_shared.h"
#include "inspect/owner.h"

#define SHARE_NS DUE_S(5)

due_store *ctl_store_new(const struct ctl_options *options)
{
    return ctl_file_of(options->store) != NULL ? ctl_file_store(options)
                                               : ctl_server_store(options);
}

due_store *ctl_store_of(const struct ctl_look *look, bool must_exist, int *status)
{
    const char *path = ctl_file_of(look->url);

    return path != NULL ? ctl_file_store_of(path, must_exist, status)
                        : ctl_server_store_of(look, must_exist, status);
}

int ctl_unopened(const struct ctl_look *look, int rc)
{
    bool none = rc == DUE_ENOTSUP && ctl_file_of(look->url) != NULL && !look->shared;

    return none ? CTL_FAULTS : CTL_BROKEN;
}

/* A file belongs to one process at a time. */
int ctl_is_shared(const struct ctl_look *look, bool *shared)
{
    *shared = false;
    return ctl_file_of(look->url) != NULL ? 0 : ctl_server_is_shared(look, shared);
}

int ctl_processes(const struct ctl_look *look, ctl_process_visit *visit, void *ctx)
{
    if (look->url == NULL)
        return ctl_owner_queues(look, visit, ctx);
    const char *path = ctl_file_of(look->url);
    return path != NULL ? ctl_file_processes(look, path, visit, ctx)
                        : ctl_server_processes(look, visit, ctx);
}

int ctl_evict_can(const struct ctl_look *look)
{
    if (ctl_file_of(look->url) == NULL)
        return 0;
    fputs("duectl: a file belongs to one process at a time: stop that one\n", stderr);
    return CTL_FAULTS;
}

int ctl_evict_all(const struct ctl_look *look, ctl_evict_done *done, void *ctx)
{
    return ctl_server_evict(look, done, ctx);
}

int ctl_held_back(const struct ctl_look *look, ctl_held_back_visit *visit, void *ctx)
{
    const char *path = ctl_file_of(look->url);

    return path != NULL ? ctl_file_held_back(path, visit, ctx)
                        : ctl_server_held_back(look, visit, ctx);
}

int ctl_jobs(const struct ctl_look *look, ctl_jobs_visit *visit, void *ctx)
{
    if (look->url == NULL)
        return ctl_owner_jobs(look, visit, ctx);
    const char *path = ctl_file_of(look->url);

    return path != NULL ? ctl_file_jobs(path, visit, ctx) : ctl_server_jobs(look, visit, ctx);
}

int ctl_jobs_named(const struct ctl_look *look, const due_id *ids, size_t n, ctl_jobs_visit *visit,
                   void *ctx)
{
    if (look->url == NULL)
        return ctl_owner_jobs_named(look, ids, n, visit, ctx);
    const char *path = ctl_file_of(look->url);

    return path != NULL ? ctl_file_jobs_named(path, ids, n, visit, ctx)
                        : ctl_server_jobs_named(look, ids, n, visit, ctx);
}

int ctl_share_again(due_store *store, const char *queue)
{
    struct timespec now;
    due_error error = { "", "" };
    struct due_store_info info;

    if (store == NULL)
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct due_store_open how = { .name = queue,
                                  .until_ns = DUE_S(now.tv_sec) + now.tv_nsec + SHARE_NS };
    const struct due_shared_verbs *verbs = store->verbs->shared;
    int rc = verbs == NULL ? DUE_ENOTSUP : verbs->join(store, &how, &info, &error);
    if (rc == 0)
        (void)verbs->leave(store, how.until_ns);
    else
        fprintf(stderr,
                "duectl: the queue %s was shared, and has an owner now: %s; whoever shares it "
                "again makes it so\n",
                queue, error.text[0] != '\0' ? error.text : due_error_text(rc));
    ctl_store_free(store);
    return rc == 0 ? 0 : CTL_BROKEN;
}

void ctl_store_free(due_store *store)
{
    if (store != NULL)
        store->verbs->free(store);
}
