/* test_share_spoiled.c - every key of a shared queue missing, with contents that make no sense, or
 * of another type, met by every script.
 *
 * The answer is one that makes sense, or an error that the library takes for spoiled keys.  Nothing
 * of any other job has changed, and no script has gone on for long.  Once the key is put right the
 * same number goes again, and then all comes that waited.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lab/matrix.h"
#include "lab/redis/share_calls.h"
#include "lab/redis/share_spoil.h"
#include "redis/resp/reply.h"

enum { COMMANDS_MOST = 1500 };

static void spoil(const char *key, const struct spoil *s)
{
    char text[SPOIL_TEXT];

    spoil_text(s, text);
    redisReply *r = share_ask(&one, "EVAL %s 0 due:{q}:%s", text, key);
    cr_assert_neq(r->type, REDIS_REPLY_ERROR, "%s of %s: %s", s->name, key, r->str);
    freeReplyObject(r);
}

/* ---- What has to be so ----------------------------------------------------------------------- */

static char cell[200];

static long long commands_done(void)
{
    redisReply *r = share_ask(&one, "INFO stats");
    const char *at = strstr(r->str, "total_commands_processed:");

    cr_assert_not_null(at);
    long long n = strtoll(strchr(at, ':') + 1, NULL, 10);
    freeReplyObject(r);
    return n;
}

/* An error that says nothing else but that what is stored makes no sense. */
static void expect_sense(void)
{
    redisReply error = { .type = REDIS_REPLY_ERROR, .str = each_error, .len = strlen(each_error) };

    cr_expect(each_code != '\0' && strchr("DEFLPJOMVN", each_code) != NULL, "%s: %c", cell,
              each_code);
    if (each_code == 'E')
        cr_expect_eq(due__reply_classify(&error), DUE__REPLY_WRONG, "%s: %s", cell, each_error);
}

/* The driver ends the program where an answer has too few words. */
static void say_cell(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, cell, strlen(cell));
    (void)!write(STDERR_FILENO, "\n", 1);
}

/* By bystanders and topic, how often it came. */
static void count_came(int came[100])
{
    for (int i = 0; i < two.answer.count; i++) {
        const struct share_job *j = &two.answer.job[i];

        if (strncmp(j->id, "by", 2) == 0 && atoi(j->id + 2) < 100)
            came[atoi(j->id + 2)]++;
    }
}

/* A new job is put, and all comes and is done, each bystander once. */
static void goes_on(const struct each_call *c)
{
    static const int comes[] = { 5, 6, 7, 8, 15, 17, 21 };
    static struct share_outcome done[SHARE_MOST];
    static char ids[SHARE_MOST][SHARE_ID + 1];
    int came[100] = { 0 };
    int n = 0;
    int none = 0;

    each_send(job(50, T0));
    cr_expect_eq(one.answer.code, 'D', "%s: put: %c %s", cell, one.answer.code, one.answer.error);
    share_turn(&one, EACH_CLOCK, OVER_US);
    for (int turns = 0; none < 2 && turns < 60; turns++) {
        each_work(&two, done, n, (struct share_claim){ 100, 0, LEASE, NULL }, 1);
        cr_expect_eq(each_code, 'D', "%s: work: %c %s", cell, each_code, each_error);
        if (each_code != 'D')
            break;
        cr_expect_null(strchr(two.answer.status, 's'), "%s", cell);
        none = two.answer.count == 0 ? none + 1 : 0;
        n = 0;
        count_came(came);
        for (int i = 0; i < two.answer.count; i++) {
            const struct share_job *j = &two.answer.job[i];
            if (strncmp(j->id, "id", 2) != 0 && strncmp(j->id, "by", 2) != 0)
                continue; /* an odd member is held for good */
            memcpy(ids[n], j->id, sizeof ids[n]);
            done[n] = (struct share_outcome){ 'a', j->topic, ids[n], two.answer.lease, 0, NULL };
            n++;
        }
    }
    for (size_t i = 0; i < sizeof comes / sizeof comes[0]; i++)
        if (comes[i] != 21 || c->call != edit_pause)
            cr_expect_eq(came[comes[i]], 1, "%s: %s came %d times", cell, by(comes[i]),
                         came[comes[i]]);
    share_beat(&one);
    cr_expect_eq(one.answer.code, 'D', "%s: beat: %c %s", cell, one.answer.code, one.answer.error);
}

/* Bystanders are due then, and may be claimed. */
static int makes_due(const char *key, const struct spoil *s)
{
    return strchr("tl", key[0]) != NULL && key[1] == ':' && strncmp(s->name, "scores", 6) == 0;
}

static void try_cell(const char *key, const struct spoil *s, const struct each_call *c)
{
    char may[80];

    snprintf(cell, sizeof cell, "%s%s, %s is %s", c->name, by_rank ? " by rank" : "", key, s->name);
    each_restore();
    spoil(key, s);
    long long before = commands_done();
    each_do(c);
    expect_sense();
    cr_expect_lt(commands_done() - before, COMMANDS_MOST, "%s", cell);
    snprintf(may, sizeof may, "%s%s", c->may, makes_due(key, s) ? " l:a l:b x g:a " : "");
    redisReply *changed = each_changed(key, may);
    cr_expect_str_empty(changed->str, "%s: %s", cell, changed->str);
    freeReplyObject(changed);
    each_put_right(key);
    if (strcmp(key, "writers") == 0) /* its numbers are those before */
        for (int i = 0; i < 3; i++)
            memcpy(each_writers[i]->number, each_base[i].number, sizeof each_base[i].number);
    each_do(c);
    expect_sense();
    cr_expect_neq(each_code, 'E', "%s, then right: %s", cell, each_error);
    if (!c->converts)
        goes_on(c);
}

static void try_all(void)
{
    int cells = 0; /* there is a prime number of calls, so each comes to each key in turn */
    int tried = 0;

    signal(SIGABRT, say_cell);
    each_begin();
    for (int k = 0; k < SPOIL_KEYS; k++)
        for (int i = 0; i < SPOILS; i++)
            for (int c = 0; c < EACH_CALLS; c++)
                if (strchr(spoils[i].types, spoil_keys[k].type) != NULL &&
                    cells++ % DUE_MATRIX_EVERY == 0) {
                    try_cell(spoil_keys[k].name, &spoils[i], &each_calls[c]);
                    tried++;
                }
    printf("test_share_spoiled: %d of %d cells\n", tried, cells);
}

Test(spoiled, keys_are_told_and_nothing_else_is_touched, .timeout = 1500)
{
    serve_with(NULL);
    try_all();
    each_end();
}

Test(spoiled, keys_of_a_queue_by_priority_are_told_and_nothing_else_is_touched, .timeout = 1500)
{
    by_rank = 1;
    serve_with(NULL);
    try_all();
    each_end();
}
