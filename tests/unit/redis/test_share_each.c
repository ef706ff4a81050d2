/* test_share_each.c - every script of a shared queue, in each of its kinds: on a node of a cluster
 * that has the queue's slot and no other, and by a user who may do what docs/redis-layout.md says.
 */
#include "lab/redis/redis_cluster.h"
#include "lab/redis/redis_user.h"
#include "lab/redis/share_calls.h"

/* Each call twice: the second one finds that the first was made. */
static void do_each(redisContext *admin)
{
    for (int i = 0; i < EACH_CALLS; i++) {
        redisContext *own = one.link;

        one.link = admin != NULL ? admin : own;
        each_restore();
        one.link = own;
        for (int times = 0; times < 2; times++) {
            each_do(&each_calls[i]);
            cr_expect(each_code != '\0' && strchr("DJLF", each_code) != NULL, "%s: %c %s",
                      each_calls[i].name, each_code, each_error);
            cr_expect(times == 1 || strchr("DJ", each_code) != NULL, "%s: %c", each_calls[i].name,
                      each_code);
        }
    }
}

static void in_a_cluster(void)
{
    int rc = redis_cluster_start(&server, "due:{q}:j");

    if (rc == REDIS_SERVER_MISSING)
        cr_skip_test("redis-server is not installed");
    cr_assert_eq(rc, 0);
    each_begin();
    redisReply *other = share_ask(&one, "SET other 1");
    cr_expect_eq(other->type, REDIS_REPLY_ERROR, "it has all slots");
    freeReplyObject(other);
    do_each(NULL);
    each_end();
}

Test(each_script, names_only_keys_of_the_queues_slot, .timeout = 120)
{
    in_a_cluster();
}

Test(each_script, of_a_queue_by_priority_names_only_keys_of_its_slot, .timeout = 120)
{
    by_rank = 1;
    in_a_cluster();
}

/* Besides that user may turn the clock of these tests. */
static void as_the_user(void)
{
    static const char *const may[] = { REDIS_USER_MAY, REDIS_SHARED_MAY };
    char set[1200] =
        "ACL SETUSER default reset on nopass ~due:{q}:* &due:{q}:* ~clock{q} +lrange +rpush";

    for (size_t i = 0; i < sizeof may / sizeof may[0]; i++) {
        strcat(set, " ");
        strcat(set, may[i]);
    }
    serve_with(NULL);
    each_begin();
    redisContext *admin = redisConnectUnix(server.socket);
    freeReplyObject(redisCommand(admin, "ACL SETUSER admin on nopass ~* &* +@all"));
    freeReplyObject(redisCommand(admin, "AUTH admin any"));
    redisReply *r = redisCommand(admin, set);
    cr_assert_eq(r->type, REDIS_REPLY_STATUS, "%s", r->str);
    freeReplyObject(r);
    redisReply *refused = share_ask(&one, "HGETALL due:{q}:j");
    cr_expect_eq(refused->type, REDIS_REPLY_ERROR, "it may do more");
    freeReplyObject(refused);
    do_each(admin);
    redisFree(admin);
    each_end();
}

Test(each_script, needs_no_more_than_the_documented_permissions, .timeout = 120)
{
    as_the_user();
}

Test(each_script, of_a_queue_by_priority_needs_no_more_than_those, .timeout = 120)
{
    by_rank = 1;
    as_the_user();
}
