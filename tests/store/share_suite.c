/* share_suite.c - runs the tests of a shared store. */
#define _GNU_SOURCE
#include "store/share_suite.h"

#include <unistd.h>

#include "store/share_frame.h"

static void start(struct sharing *t, const struct share_maker *maker, const char *test)
{
    static unsigned queues;

    sharing_begin(t, maker, test);
    snprintf(t->base.queue, sizeof t->base.queue, "share-%ld-%u", (long)getpid(), ++queues);
    if (maker->store.fresh != NULL)
        maker->store.fresh(maker->store.ctx);
}

int share_suite_run(const struct share_maker *maker, const char *only)
{
    static const struct suite_test_shared *const all[] = {
        share_change_tests,   share_edit_tests,  share_claim_tests, share_number_tests,
        share_join_tests,     share_wait_tests,  share_look_tests,  share_size_tests,
        share_history_tests,  share_topic_tests, share_key_tests,   share_group_tests,
        share_capacity_tests, share_rank_tests,  share_lend_tests,  share_revoke_tests
    };
    unsigned failed = 0;
    unsigned skipped = 0;
    unsigned ran = 0;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (const struct suite_test_shared *test = all[i]; test->name != NULL; test++) {
            struct sharing t;

            if (only != NULL && strncmp(test->name, only, strlen(only)) != 0)
                continue;
            start(&t, maker, test->name);
            test->run(&t);
            failed += t.base.failed;
            skipped += t.base.skipped;
            ran++;
            printf("%-6s  %s\n",
                   t.base.failed    ? "FAILED"
                   : t.base.skipped ? "left"
                                    : "ok",
                   test->name);
            fflush(stdout);
            sharing_end(&t);
        }
    printf("%s, shared: %u tests, %u failed, %u left out for want of a hook\n", maker->store.name,
           ran, failed, skipped);
    return failed > 0;
}
