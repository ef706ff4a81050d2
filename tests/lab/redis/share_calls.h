/* share_calls.h - every script of a shared queue, in each of its kinds: calls on the queue of
 * share_each.h, all of which can be done from its beginning, and once more after that.
 */
#ifndef SHARE_CALLS_H
#define SHARE_CALLS_H

#include "lab/redis/share_each.h"

/* ---- The calls ------------------------------------------------------------------------------- */

/* What the last call has answered: as struct share_answer has it, or E. */
static char each_code;
static char each_error[160];

static inline void each_answered(const struct share *s)
{
    each_code = s->answer.code;
    snprintf(each_error, sizeof each_error, "%s", s->answer.error);
}

static inline void each_work(struct share *s, const struct share_outcome *done, int n,
                             struct share_claim claim, int tied)
{
    share_tied = tied;
    share_work(s, done, n, claim);
    if (s->answer.code == 'R' && !share_tied) {
        share_tied = 1;
        share_again(s, 1);
        share_work(s, done, n, claim);
    }
    each_answered(s);
    share_tied = 1;
}

/* A script that the lab's driver does not know; @keys begin behind the queue's name. */
static inline void each_run(const struct due__script *script, const char *const *keys,
                            const char *const *words)
{
    const char *argv[64] = { "EVAL" };
    size_t lens[64];
    char names[24][64];
    char count[12];
    size_t len;
    char *text =
        share_text(script, strstr(script->text, "'TIME'") != NULL ? EACH_CLOCK : NULL, 0, &len);
    int n = 3;
    int k = 0;

    for (; keys[k] != NULL; k++) {
        snprintf(names[k], sizeof names[k], "due:{q}:%s", keys[k]);
        argv[n++] = names[k];
    }
    snprintf(count, sizeof count, "%d", k);
    argv[1] = text;
    argv[2] = count;
    for (; *words != NULL; words++)
        argv[n++] = *words;
    for (int i = 0; i < n; i++)
        lens[i] = strlen(argv[i]);
    lens[1] = len;
    redisReply *r = redisCommandArgv(one.link, n, argv, lens);
    cr_assert_not_null(r, "the server is gone");
    each_code = r->type == REDIS_REPLY_ERROR ? 'E' : 'D';
    snprintf(each_error, sizeof each_error, "%s", each_code == 'E' ? r->str : "");
    if (r->type == REDIS_REPLY_ARRAY && r->elements == 1 &&
        r->element[0]->type == REDIS_REPLY_STRING)
        each_code = r->element[0]->str[0];
    freeReplyObject(r);
    free(text);
}

#define KEYS(...)  ((const char *const[]){ __VA_ARGS__, NULL })
#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define OURS       "fence", "owner", "meta"
#define OUR(mode)  one.fence, "60000", "1 host", mode

static inline void each_edit(struct share_change c)
{
    share_edit(&one, &c, 1);
    each_answered(&one);
}

static inline void each_amend(char kind, int n, int64_t score)
{
    share_amend(&one, (struct share_change){ kind, 1, id(n), -1, NULL, score, "" }, "record",
                strchr("lz", kind) != NULL ? "" : "other", kind == 'u');
    each_answered(&one);
}

static inline void each_end_of(char kind, int n)
{
    struct share_outcome done = { kind, 1, id(n), each_lease, T0 + 7, MOVED_ENTRY };

    if (kind == 'e')
        done.score = 200000000;
    each_work(&two, &done, 1, (struct share_claim){ 0 }, n != 9);
}

static inline void each_reply(redisReply *r)
{
    each_code = r->type == REDIS_REPLY_ARRAY ? 'D' : 'E';
    snprintf(each_error, sizeof each_error, "%s", r->type == REDIS_REPLY_ERROR ? r->str : "");
    freeReplyObject(r);
}

static inline void each_do_put(struct share_job j)
{
    each_send(j);
    each_answered(&one);
}

static inline void put_plain_one(void)
{
    each_do_put(job(30, T0));
}

static inline void put_with_entry(void)
{
    struct share_job j = job(31, T0 + 5);

    j.entry = MOVED_ENTRY;
    j.is_long = 1;
    j.record = "record";
    each_do_put(j);
}

static inline void put_with_key(void)
{
    struct share_job j = grouped(32, T0 - 500, "g");

    j.key = "k32";
    each_do_put(j);
}

static inline void put_over(void)
{
    struct share_job j = job(33, T0 + 5);

    j.key = "k2";
    j.from = id(2);
    each_do_put(j);
}

static inline void put_behind(void)
{
    each_do_put(grouped(34, T0 + 5, "g"));
}

static inline void claim_plain(void)
{
    each_work(&two, NULL, 0, (struct share_claim){ 2, 1, LEASE, "a" }, 0);
}

static inline void claim_whole(void)
{
    each_work(&two, NULL, 0, (struct share_claim){ 9, 0, LEASE, "a" }, 1);
}

static inline void claim_by_topic(void)
{
    each_work(&two, NULL, 0, (struct share_claim){ 9, 0, LEASE, "t2" }, 1);
}

static inline void end_all(void)
{
    struct share_outcome done[] = { { 'a', 1, id(9), each_lease, 0, NULL },
                                    { 'a', 1, id(10), each_lease, 0, NULL },
                                    { 'a', 1, id(11), each_lease, 0, NULL },
                                    { 'n', 1, id(16), each_lease, T0, MOVED_ENTRY } };

    each_work(&two, done, 4, (struct share_claim){ 1, 0, LEASE, "a" }, 1);
}

#define EACH_END(name, kind, n)   \
    static inline void name(void) \
    {                             \
        each_end_of(kind, n);     \
    }

EACH_END(end_ack, 'a', 9)
EACH_END(end_ack_key, 'a', 10)
EACH_END(end_ack_group, 'a', 11)
EACH_END(end_ack_revoked, 'a', 16)
EACH_END(end_keep, 'K', 10)
EACH_END(end_again, 'n', 11)
EACH_END(end_again_revoked, 'n', 16)
EACH_END(end_other, 'o', 11)
EACH_END(end_other_keep, 'O', 10)
EACH_END(end_bury, 'b', 11)
EACH_END(end_release, 'r', 9)
EACH_END(end_begin, 't', 9)
EACH_END(end_extend, 'e', 10)

#define EACH_EDIT(name, ...)                             \
    static inline void name(void)                        \
    {                                                    \
        each_edit((struct share_change){ __VA_ARGS__ }); \
    }

EACH_EDIT(edit_cancel, 'c', 0, id(1), -1, NULL, 0, NULL)
EACH_EDIT(edit_cancel_key, 'c', 1, id(2), T0 - 9, NULL, 0, "k2")
EACH_EDIT(edit_cancel_front, 'c', 1, id(3), -1, NULL, 0, NULL)
EACH_EDIT(edit_cancel_kept, 'c', 1, id(4), -1, NULL, 0, NULL)
EACH_EDIT(edit_revoke, 'c', 1, id(9), -1, NULL, 1, NULL)
EACH_EDIT(edit_move, 'm', 1, id(1), T0 - 10, "", T0 + 9, MOVED_ENTRY)
EACH_EDIT(edit_move_kept, 'm', 1, id(4), T0 - 7, "", T0 - 400, MOVED_ENTRY)
EACH_EDIT(edit_kick, 'k', 1, id(13), -1, NULL, T0, MOVED_ENTRY)
EACH_EDIT(edit_drop_dead, 'x', 1, id(13), -1, NULL, 0, NULL)
EACH_EDIT(edit_pause, 's', 2, id(0), -1, NULL, 1, "")
EACH_EDIT(edit_limit, 's', 1, id(0), -1, NULL, 0, "3")

#define EACH_AMEND(name, kind, n, score) \
    static inline void name(void)        \
    {                                    \
        each_amend(kind, n, score);      \
    }

EACH_AMEND(amend_waiting, 'u', 1, T0 - 10)
EACH_AMEND(amend_kept, 'u', 4, T0 - 6)
EACH_AMEND(amend_dead, 'v', 13, T0 - 30)
EACH_AMEND(amend_kick, 'w', 13, T0 + 1)
EACH_AMEND(amend_cancel, 'l', 1, 0)
EACH_AMEND(amend_revoke, 'l', 9, 1)
EACH_AMEND(amend_drop, 'z', 13, 0)

static inline void do_aside(void)
{
    share_aside(&two, id(11));
    each_answered(&two);
}

static inline void do_join(void)
{
    share_turn(&one, EACH_CLOCK, T0 + 1000000); /* names of writers are of the clock */
    share_join(&three);
    each_answered(&three);
}

static inline void do_leave(void)
{
    share_leave(&three);
    each_answered(&three);
}

static inline void do_beat(void)
{
    one.waits_room = 1;
    share_beat_for(&one, 1);
    each_answered(&one);
}

static inline void do_census(void)
{
    each_reply(share_census(&one));
}

static inline void do_page(void)
{
    each_reply(share_page(&one, 3, T0 - 8, id(3)));
}

static inline void page_of_dead(void)
{
    each_run(&due__script_page, KEYS("dead"), WORDS("3", "", ""));
}

static inline void do_key(void)
{
    each_run(&due__script_key, KEYS("k", "kx", "j"), WORDS("k2"));
}

static inline void key_of_kept(void)
{
    each_run(&due__script_key, KEYS("k", "kx", "j"), WORDS("old"));
}

static inline void do_evict(void)
{
    each_run(&due__script_evict, KEYS("writers", "p", "w", "wr", "w:a", "w:b"),
             WORDS(three.writer, three.prefix));
}

static inline void fold_leased(void)
{
    each_run(&due__script_fold, KEYS(OURS, "l:a", "t:a", "dead", "w:a", "j", "a", "x", "k", "jk"),
             WORDS(OUR(""), id(9), "1800000000000000", id(10), "1800000000000001", id(16),
                   "1800000000000002", id(11), ""));
}

static inline void fold_kept(void)
{
    each_run(&due__script_fold, KEYS(OURS, "g:a", "t:a", "dead", "w:a", "j", "a", "x", "k", "jk"),
             WORDS(OUR(""), id(4), "1800000000000000", id(12), "1800000000000001"));
}

static inline void clear_hash(void)
{
    each_run(&due__script_clear, KEYS(OURS, "jk"), WORDS(OUR(""), "0"));
}

static inline void clear_zset(void)
{
    each_run(&due__script_clear, KEYS(OURS, "g"), WORDS(OUR(""), "z"));
}

static inline void do_own(void)
{
    each_run(&due__script_own,
             KEYS(OURS, "writers", "c", "p", "w", "h", "jk", "b", "wr", "g", "gh", "jg", "x"),
             WORDS(OUR("")));
}

static inline void under_way_owning(void)
{
    each_run(&due__script_under_way, KEYS(OURS), WORDS(OUR(""), "owning", ""));
}

static inline void under_way_sharing(void)
{
    each_run(&due__script_under_way, KEYS(OURS), WORDS(OUR(""), "sharing", "priority"));
}

static inline void do_index(void)
{
    each_run(&due__script_index, KEYS(OURS, "jk", "b", "jg", "gh"),
             WORDS(OUR(""), "1", "1", "1", id(40), "k40", id(41), "group", id(42), "99999"));
}

static inline void do_ranks(void)
{
    each_run(&due__script_ranks, KEYS(OURS, "t:a", "o:a"), WORDS(OUR(""), "0", "100"));
}

static inline void do_heads(void)
{
    each_run(&due__script_heads, KEYS(OURS, "topics", "h", "t:a", "t:b", "t:c"),
             WORDS(OUR(""), "a", "b", "c"));
}

static inline void do_share(void)
{
    each_run(&due__script_share, KEYS(OURS), WORDS(OUR(""), "nonce"));
}

struct each_call {
    const char *name;
    void (*call)(void);
    const char *may; /* keys in which it may change what is a bystander's, between spaces */
    int converts;    /* the queue is no longer one that is shared */
};

static const struct each_call each_calls[] = {
    { "put_plain", put_plain_one, "", 0 },
    { "put_plain, with an entry, long", put_with_entry, "", 0 },
    { "put with a key and a group", put_with_key, "", 0 },
    { "put that takes a key over", put_over, "", 0 },
    { "put behind others of a group", put_behind, "", 0 },
    { "work_plain that claims", claim_plain, "", 0 },
    { "work that claims", claim_whole, "", 0 },
    { "work that claims of a topic", claim_by_topic, "", 0 },
    { "work that ends and claims", end_all, "", 0 },
    { "work_plain a", end_ack, "", 0 },
    { "work a of a key", end_ack_key, "", 0 },
    { "work a of a group", end_ack_group, "", 0 },
    { "work a, cancelled", end_ack_revoked, "", 0 },
    { "work K", end_keep, "", 0 },
    { "work n", end_again, "", 0 },
    { "work n, cancelled", end_again_revoked, "", 0 },
    { "work o", end_other, "", 0 },
    { "work O", end_other_keep, "", 0 },
    { "work b", end_bury, "", 0 },
    { "work_plain r", end_release, "", 0 },
    { "work_plain t", end_begin, "", 0 },
    { "work e", end_extend, "", 0 },
    { "edit c", edit_cancel, "", 0 },
    { "edit c with a key", edit_cancel_key, "", 0 },
    { "edit c of who is in front", edit_cancel_front, "", 0 },
    { "edit c of who is kept back", edit_cancel_kept, "", 0 },
    { "edit c of what is held", edit_revoke, "", 0 },
    { "edit m", edit_move, "", 0 },
    { "edit m of who is kept back", edit_move_kept, "", 0 },
    { "edit k", edit_kick, "", 0 },
    { "edit x", edit_drop_dead, "", 0 },
    { "edit s, a pause", edit_pause, "", 0 },
    { "edit s, a limit", edit_limit, "", 0 },
    { "edit u", amend_waiting, "", 0 },
    { "edit u of who is kept back", amend_kept, "", 0 },
    { "edit v", amend_dead, "", 0 },
    { "edit w", amend_kick, "", 0 },
    { "edit l", amend_cancel, "", 0 },
    { "edit l of what is held", amend_revoke, "", 0 },
    { "edit z", amend_drop, "", 0 },
    { "aside", do_aside, "", 0 },
    { "join", do_join, "", 0 },
    { "leave", do_leave, "", 0 },
    { "beat", do_beat, "", 0 },
    { "census", do_census, "", 0 },
    { "page", do_page, "", 0 },
    { "page of the dead", page_of_dead, "", 0 },
    { "key", do_key, "", 0 },
    { "key that is kept", key_of_kept, "", 0 },
    { "evict", do_evict, "", 0 },
    { "fold l", fold_leased, "", 1 },
    { "fold g", fold_kept, "", 1 },
    { "clear of a hash", clear_hash, " jk ", 1 },
    { "clear of a zset", clear_zset, " g ", 1 },
    { "own", do_own, " jk b g gh jg x ", 1 },
    { "under_way, owning", under_way_owning, "", 1 },
    { "under_way, sharing", under_way_sharing, "", 1 },
    { "index", do_index, "", 1 },
    { "ranks", do_ranks, " o:a ", 1 },
    { "heads", do_heads, "", 1 },
    { "share", do_share, "", 1 },
};

enum { EACH_CALLS = sizeof each_calls / sizeof each_calls[0] };

/* It takes a number in a lane, unless it is refused: the same one goes once more then. */
static inline void each_do(const struct each_call *c)
{
    int64_t was[3][2];

    for (int i = 0; i < 3; i++)
        memcpy(was[i], each_writers[i]->number, sizeof was[i]);
    c->call();
    for (int i = 0; each_code != 'D' && each_code != 'J' && i < 3; i++)
        memcpy(each_writers[i]->number, was[i], sizeof was[i]);
}

#endif
