/* share_steps.c - one thing after another that a process of a history does, drawn at random. */
#include "store/share_steps.h"

#include <stdatomic.h>

#include "store/share_replay.h"

static uint64_t below(struct sharing *t, uint64_t n)
{
    return suite_below(&t->base, n);
}

/* What was gathered is sent, perhaps with an answer that gets lost.  But not that of a claim if
 * others (@at_once) may come between: what is over of it by then is not shown, and the model would
 * not know of it. */
bool share_send(struct sharing *t, int s, bool at_once)
{
    bool doubt = t->maker->doubt != NULL && below(t, 6) == 0;

    if (doubt && !(at_once && t->claims))
        t->maker->doubt(t->maker->store.ctx, t->base.stores[s], t->work, below(t, 2));
    bool claims = t->claims;
    int64_t asked_ns = suite_now_ns();
    replay_asked(t->replay, t->base.changes, t->base.n_changes, claims ? &t->claim : NULL);
    int rc = sharing_send(t, s);
    if (rc == DUE_ELOST && t->may_lose) {
        replay_unanswered(t->replay);
        t->lost = true;
        return false;
    }
    if (rc == DUE_EFENCED && t->may_lose) {
        if (t->calls == 1)
            replay_unanswered(t->replay);
        t->fenced = true;
        return false;
    }
    if (!suite_answers(&t->base, rc, 0, __FILE__, __LINE__, "exchange"))
        return false;
    replay_answered(t->replay, t->results, &t->answer);
    /* A long job that is read when its lease is over may have gone. */
    bool late = t->calls > 1 || (t->long_len > 0 && suite_now_ns() - asked_ns > DUE_MS(3));
    if (claims && late && t->heard_late != NULL)
        t->heard_late(t);
    return true;
}

/* Of many jobs the newer ones, mostly: the others are gone. */
static size_t any_job(struct sharing *t)
{
    size_t n = t->base.n_jobs;

    if (n <= 400 || below(t, 8) == 0)
        return (size_t)below(t, n);
    return n - 1 - (size_t)below(t, 200);
}

/* Few, so that they meet. */
static const char *const keys[] = { "k", "l", "m", "n", "long" };

static const char *const groups[] = { "g", "h", "gg" };

static void name_key(struct sharing *t, due_record *r)
{
    r->key = keys[below(t, 5)];
    r->key_len = strlen(r->key);
}

static const char long_bytes[32768] = "long";

static void gather_puts(struct sharing *t)
{
    static const char *const topics[] = { "a", "b", "c" };
    int64_t now_ns = sharing_now(t);

    for (uint64_t i = 1 + below(t, 4); i-- > 0;) {
        int64_t in_ns = DUE_US((int64_t)below(t, 80000)) - DUE_MS(40);
        bool is_long = t->long_len > 0 && below(t, 30) == 0;
        size_t job = suite_job(&t->base, topics[below(t, 3)], now_ns + in_ns,
                               is_long ? long_bytes : "x", is_long ? t->long_len : 1);
        due_record *r = &t->base.jobs[job].record;

        r->priority = below(t, 3) == 0 ? 9 : t->by_rank ? (uint8_t)below(t, 4) : 0;
        r->id = suite_id(r->priority, t->base.info[0].writer, job);
        if (below(t, 3) == 0)
            name_key(t, r);
        if (below(t, 2) == 0) {
            r->group = groups[below(t, 3)];
            r->group_len = strlen(r->group);
        }
        sharing_put(t, job);
        t->base.changes[t->base.n_changes - 1].keeps_room = t->capacity > 0 && below(t, 16) == 0;
        if (r->key_len > 0 && job > 8) /* of a late one, perhaps that one's */
            t->base.changes[t->base.n_changes - 1].from =
                t->base.jobs[job - 1 - below(t, 8)].record.id;
    }
}

/* In a long history the dead would become many. */
static bool gather_strikes(struct sharing *t)
{
    size_t n = t->base.n_jobs;

    for (size_t i = n <= 400 ? 0 : 300; i-- > 0 && t->base.n_changes < 16;) {
        due_record *r = &t->base.jobs[n - 1 - i].record;

        if (r->cause == 0)
            continue;
        sharing_strike(t, n - 1 - i);
        r->cause = 0; /* it is known as dead no more */
    }
    return t->base.n_changes > 0;
}

/* Of any job, whatever its state; sometimes with a belief that is wrong. */
static void gather_edit(struct sharing *t)
{
    if (t->base.n_jobs == 0 || (below(t, 3) == 0 && gather_strikes(t)))
        return;
    size_t job = any_job(t);
    bool dead = t->base.jobs[job].record.cause != 0;
    uint64_t kind = below(t, 3);

    if (kind == 0) {
        sharing_cancel(t, job);
        t->base.changes[0].revokes = !dead && below(t, 2) == 0;
        if (below(t, 2) == 0)
            name_key(t, &t->base.changes[0].record); /* perhaps another's */
    }
    if (kind != 0 && dead)
        sharing_kick(t, job, sharing_now(t) + DUE_MS((int64_t)below(t, 60)));
    else if (kind != 0)
        sharing_move(t, job, sharing_now(t) + DUE_MS((int64_t)below(t, 60)));
    if (below(t, 8) == 0)
        t->base.changes[0].was_ns += DUE_MS(1);
    if (!dead && below(t, 8) == 0)
        t->base.changes[0].record.attempts++; /* which it has not */
    if (kind == 0 && dead && below(t, 2) == 0)
        t->base.changes[0].dead_max = 1 + below(t, 6);
}

/* A job is looked at, or was, perhaps before others changed it. */
static bool look_at_any(struct sharing *t, int s, size_t *job)
{
    bool again = t->mark_len > 0 && below(t, 3) == 0;

    *job = again ? t->marked : t->base.n_jobs > 0 ? any_job(t) : 0;
    if (*job >= t->base.n_jobs || (!again && !sharing_look(t, s, *job)))
        return false;
    if (below(t, 4) == 0)
        sharing_pass(t, DUE_US((int64_t)below(t, 3000))); /* others may come between */
    return true;
}

static void gather_lend(struct sharing *t, int s)
{
    size_t job;

    if (!look_at_any(t, s, &job))
        return;
    sharing_lend(t, job);
    t->base.changes[0].revokes = !t->base.changes[0].was_dead && below(t, 3) == 0;
    if (below(t, 4) == 0)
        name_key(t, &t->base.changes[0].record); /* perhaps another's */
}

/* It gets bytes that no job had before. */
static void gather_amend(struct sharing *t, int s)
{
    static char texts[4096][24];
    static atomic_uint n;
    size_t job;

    if (!look_at_any(t, s, &job))
        return;
    unsigned count = atomic_fetch_add(&n, 1);
    unsigned text = count % 4096;
    snprintf(texts[text], sizeof texts[text], "n%llx-%u",
             (unsigned long long)t->base.info[s].writer & 0xffffff, count);
    sharing_amend(t, job, sharing_now(t) + DUE_MS((int64_t)below(t, 60)), texts[text],
                  strlen(texts[text]));
    t->base.changes[0].anew = t->base.jobs[job].record.cause == 0 && below(t, 3) == 0;
}

static void gather_hold_back(struct sharing *t)
{
    static const char *const topics[] = { "a", "b", "c" };
    int64_t paused = (int64_t)below(t, 4) - 2;

    sharing_hold_back(t, topics[below(t, 3)], paused < 0 ? -1 : paused,
                      below(t, 2) == 0 ? -1 : (int64_t)below(t, 5));
}

static void gather_end(struct sharing *t, struct stepping *p, size_t i)
{
    struct sharing_held h = p->held[i];
    uint64_t kind = below(t, 8);

    for (size_t k = 0; k < t->base.n_changes; k++)
        if (t->base.changed[k] == h.job)
            return; /* it had the job twice, and of one lease does not know yet that it is over */
    if (kind == 0)
        sharing_bury(t, h, "no good");
    else if (kind == 1)
        sharing_start(t, h, t->base.jobs[h.job].record.attempts + 1);
    else if (kind == 2)
        sharing_extend(t, h, DUE_MS(10 + (int64_t)below(t, 60)));
    else if (kind == 3)
        sharing_release(t, h);
    else if (kind < 6)
        (kind == 4 ? sharing_back : sharing_round)(
            t, h, sharing_now(t) + DUE_MS((int64_t)below(t, 60)) - DUE_MS(10));
    else
        sharing_done(t, h);
    if (kind > 4 && below(t, 2) == 0)
        t->base.changes[t->base.n_changes - 1].key_kept_ns =
            sharing_now(t) + DUE_MS((int64_t)below(t, 60));
    if (kind != 1 && kind != 2)
        p->held[i] = p->held[--p->n];
}

static void gather_claim(struct sharing *t)
{
    static const char *const two[] = { "c", "a" };

    sharing_claim(t, (size_t)below(t, 5), (size_t)below(t, 3), DUE_MS(5 + (int64_t)below(t, 60)));
    t->claim.waits = below(t, 2) == 0;
    if (below(t, 3) == 0)
        sharing_of(t, two, 1 + (size_t)below(t, 2));
}

bool share_step(struct sharing *t, struct stepping *processes, int n)
{
    int s = (int)below(t, (uint64_t)n);
    struct stepping *p = &processes[s];
    uint64_t what = below(t, 20);

    if (what < 3)
        sharing_pass(t, DUE_US((int64_t)below(t, 12000)));
    if (what == 3 && s > 0) { /* killed, and another one comes */
        sharing_vanish(t, s);
        p->n = 0;
        return suite_answers(&t->base, sharing_join(t, s), 0, __FILE__, __LINE__, "join");
    }
    if (what < 8)
        gather_puts(t);
    else if (what < 10 && below(t, 4) == 0)
        gather_hold_back(t);
    else if (what < 10)
        (below(t, 3) == 0 ? gather_lend : gather_amend)(t, s);
    else if (what < 12)
        gather_edit(t);
    else {
        for (size_t i = p->n; i-- > 0;)
            if (below(t, 3) == 0)
                gather_end(t, p, i);
        if (what < 18 || t->base.n_changes == 0)
            gather_claim(t);
    }
    if (t->base.n_changes == 0 && !t->claims)
        return true;
    if (!share_send(t, s, n == 1))
        return false;
    for (size_t i = 0; i < t->n_held && p->n < STEPS_HELD; i++)
        p->held[p->n++] = t->held[i];
    return true;
}
