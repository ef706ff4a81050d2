/* stored_orders.c - the scenarios of orders.c over a store, which may refuse, be away, or leave it
 * in doubt what has landed.
 *
 * A verb that failed may have done nothing; all else as there.  And when all is over the queue and
 * the store agree: on the jobs, on what is in them, and on whose the key is.
 */
#include "orders.h"

#include "acts.h"
#include "store/sender.h"
#include "queue/queue.h"

static void at_rest(void)
{
    shelf_at_rest(ledger->q);
}

/* ---- What must hold ---- */

static void check_key(void)
{
    const struct shelf *it = &ledger->shelf;
    due_spec spec = { DUE_SPEC_INIT,
                      .more = EXTRA(.key = ORDERS_KEY, .key_len = sizeof ORDERS_KEY) };
    due_id id;
    int rc = due_id_of_key(ledger->q, ORDERS_KEY, sizeof ORDERS_KEY, &id);

    explore_check((rc == 0) == (it->key == SHELF_KEY_OF_JOB),
                  "the key is a job's: %d, and %d there", rc, (int)it->key);
    explore_check(rc != 0 || due_id_equal(id, it->key_id), "the key is another job's there");
    if (rc == 0)
        return;
    bool kept = it->key == SHELF_KEY_KEPT;
    rc = due_enqueue(ledger->q, &spec, 0, &id);
    explore_check((rc == DUE_EEXIST) == kept, "kept there: %d, and an enqueue answers %d", kept,
                  rc);
    explore_check(rc != 0 || due_cancel(ledger->q, id, NULL) == 0, "cancel");
}

static void check_jobs(void)
{
    struct due_stats s;
    uint64_t jobs = 0;

    for (unsigned i = 0; i < SHELF_JOBS; i++) {
        const struct shelf_job *job = &ledger->shelf.job[i];
        due_info info;

        if (!job->there)
            continue;
        jobs++;
        int rc = due_find(ledger->q, job->id, &info);
        explore_check(rc == 0 || rc == DUE_EBUSY, "only the store has it: %d", rc);
        explore_check(rc != 0 || (info.len == job->len && info.deadline_ns == job->until_ns),
                      "it is another there: %zu bytes, not %zu", job->len, info.len);
    }
    explore_check(due_stats_read(ledger->q, &s) == 0, "stats");
    explore_check(s.waiting + s.leased == jobs, "%llu wait and %llu are leased, and %llu there",
                  (unsigned long long)s.waiting, (unsigned long long)s.leased,
                  (unsigned long long)jobs);
    explore_check(s.unsettled == 0, "something is on its way still");
}

static void check(void)
{
    shelf_mend(&ledger->shelf);
    explore_check(due_flush(ledger->q, DUE_S(1)) == 0, "it cannot be flushed");
    due__takings_return(ledger->q);    /* what nobody has come back for */
    for (unsigned i = 0; i < 4; i++) { /* what is on its way back, and may have been refused */
        ledger->q->commits->later = false;
        due__commit_work(ledger->q, NULL, DUE_FOREVER);
    }
    check_jobs();
    check_key();
    orders_check();
}

/* ---- Setup ---- */

static void open_stored(struct plan plan, struct shelf how, enum due_confirm confirm)
{
    struct shelf *it;

    plan.stored = true;
    plan.async = confirm == DUE_CONFIRM_ASYNC;
    orders_open(plan, (due_options){ .store_timeout_ns = DUE_MS(1), .confirm = confirm });
    it = &ledger->shelf;
    shelf_loaded(ledger->q);
    orders_begin();
    it->away = how.away;
    it->doubt = how.doubt;
    it->deaf = how.deaf;
    it->full = how.full;
    it->refuses = how.refuses;
    it->ahead = how.ahead;
}

#define PLAN(...)  ((struct plan){ __VA_ARGS__ })
#define SHELF(...) ((struct shelf){ .closed = false, __VA_ARGS__ })
#define STORED(setup_, plan_, shelf_, confirm_)             \
    static void setup_(void)                                \
    {                                                       \
        open_stored(plan_, shelf_, DUE_CONFIRM_##confirm_); \
    }
#define TWO(a, b)      .verbs = 2, .verb = { (a), (b) }
#define THREE(a, b, c) .verbs = 3, .verb = { (a), (b), (c) }
#define BACK(a)        .two = true, .verbs = 4, .verb = { (a), RESERVE, PUT_SECOND, GIVE_BACK }
#define REPLACE        .policy = { DUE_KEY_REPLACE, DUE_KEY_REPLACE }

/* Nobody has the key yet. */
STORED(refuse_two, PLAN(TWO(PUT_FIRST, PUT_SECOND)), SHELF(), SYNC)
STORED(replace_two, PLAN(REPLACE, TWO(PUT_FIRST, PUT_SECOND)), SHELF(), SYNC)
STORED(earliest_debounce,
       PLAN(.policy = { DUE_KEY_EARLIEST, DUE_KEY_DEBOUNCE }, TWO(PUT_FIRST, PUT_SECOND)), SHELF(),
       SYNC)
STORED(refuse_full, PLAN(TWO(PUT_FIRST, PUT_SECOND)), SHELF(.full = 1), SYNC)
STORED(replace_full, PLAN(REPLACE, TWO(PUT_FIRST, PUT_SECOND)), SHELF(.full = 1), SYNC)
STORED(replace_doubt, PLAN(REPLACE, TWO(PUT_FIRST, PUT_SECOND)), SHELF(.doubt = 1), SYNC)
STORED(replace_away, PLAN(REPLACE, TWO(PUT_FIRST, PUT_SECOND)), SHELF(.away = 2), SYNC)

/* X has it. */
STORED(take_full, PLAN(.x = WAITS, REPLACE, TWO(PUT_FIRST, TAKE)), SHELF(.doubt = 1, .full = 1),
       SYNC)
STORED(refuse_cancel, PLAN(.x = WAITS, TWO(PUT_FIRST, CANCEL)), SHELF(), SYNC)
STORED(replace_take, PLAN(.x = WAITS, REPLACE, TWO(PUT_FIRST, TAKE)), SHELF(), SYNC)
STORED(replace_ack, PLAN(.x = RESERVED, .keep = true, REPLACE, TWO(PUT_FIRST, ACK)), SHELF(), SYNC)
STORED(ack_full, PLAN(.x = RESERVED, .keep = true, REPLACE, TWO(PUT_FIRST, ACK)), SHELF(.full = 1),
       SYNC)
STORED(ack_doubt, PLAN(.x = RESERVED, .keep = true, REPLACE, TWO(PUT_FIRST, ACK)),
       SHELF(.doubt = 1), SYNC)
STORED(ack_ahead, PLAN(.x = RESERVED, .keep = true, REPLACE, TWO(PUT_FIRST, ACK)),
       SHELF(.ahead = true), SYNC)
STORED(ack_async, PLAN(.x = RESERVED, .keep = true, REPLACE, TWO(PUT_FIRST, ACK)), SHELF(.full = 1),
       ASYNC)
STORED(ack_then_refuse,
       PLAN(.x = RESERVED, .two = true, .policy = { DUE_KEY_REPLACE, DUE_KEY_REFUSE },
            THREE(PUT_FIRST, ACK, PUT_SECOND)),
       SHELF(), ASYNC)
STORED(two_ack,
       PLAN(.x = RESERVED, .policy = { DUE_KEY_REPLACE, DUE_KEY_REFUSE },
            THREE(PUT_FIRST, PUT_SECOND, ACK)),
       SHELF(.full = 1), SYNC)
STORED(replace_back, PLAN(.x = WAITS, REPLACE, BACK(PUT_FIRST)), SHELF(), SYNC)
STORED(earliest_back,
       PLAN(.x = WAITS, .early = true, .policy = { DUE_KEY_EARLIEST, DUE_KEY_DEBOUNCE },
            BACK(PUT_FIRST)),
       SHELF(), SYNC)
STORED(cancel_key_back, PLAN(.x = WAITS, REPLACE, BACK(CANCEL_KEY)), SHELF(), SYNC)
STORED(replace_update, PLAN(.x = WAITS, REPLACE, TWO(PUT_FIRST, UPDATE)), SHELF(), SYNC)
STORED(update_full, PLAN(.x = WAITS, REPLACE, TWO(PUT_FIRST, UPDATE)), SHELF(.full = 1), SYNC)

/* Changes against delivery. */
STORED(update_take, PLAN(.x = WAITS, .plain = true, TWO(UPDATE, TAKE)), SHELF(), SYNC)
STORED(amend_reserve,
       PLAN(.x = WAITS, .plain = true, .what = DUE_SET_DATA | DUE_SET_TIME, TWO(CHANGE, RESERVE)),
       SHELF(.full = 1), SYNC)
STORED(update_doubt, PLAN(.x = WAITS, .plain = true, TWO(UPDATE, TAKE)), SHELF(.doubt = 1), SYNC)
STORED(update_cancel, PLAN(.x = WAITS, .plain = true, TWO(UPDATE, CANCEL)), SHELF(.full = 1), SYNC)
STORED(take_cancel, PLAN(.x = WAITS, .plain = true, TWO(TAKE, CANCEL)), SHELF(.refuses = 1), SYNC)
STORED(update_nack, PLAN(.x = RESERVED, .plain = true, TWO(UPDATE, NACK)), SHELF(.doubt = 1), SYNC)

#define ORDERS(name_, about_, setup_, quick_, deep_)                                            \
    {                                                                                           \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = at_rest, .check = check, \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, .walks = 2,               \
    }

const struct explore_scenario explore_scenarios_stored_orders[] = {
    ORDERS("stored_key_two", "a new key twice: the second is refused", refuse_two, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_replace", "a new key twice: the second replaces", replace_two, (1, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_earliest", "a new key twice: the earlier, and the later deadline",
           earliest_debounce, (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("stored_key_full", "the first is refused by the store", refuse_full, (1, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_replace_full", "the same, and the second replaces", replace_full,
           (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("stored_key_doubt", "the first is in doubt", replace_doubt, (0, 0, 1, 0), (2, 1, 1, 0)),
    ORDERS("stored_key_away", "time is up while the store is away", replace_away, (0, 0, 1, 0),
           (2, 1, 1, 0)),
    ORDERS("stored_key_cancel", "a key, and the cancel of its job", refuse_cancel, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_take", "a job is replaced and taken", replace_take, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_take_full", "the same, in doubt, and refused", take_full, (1, 0, 1, 0),
           (2, 1, 1, 0)),
    ORDERS("stored_key_ack", "a key is taken over, and its job acked", replace_ack, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_ack_full", "the same, and who takes over is refused", ack_full, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_ack_doubt", "the same, and the first batch is in doubt", ack_doubt,
           (1, 0, 1, 0), (2, 1, 1, 0)),
    ORDERS("stored_key_ack_ahead", "the same, with batches sent ahead", ack_ahead, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_ack_async", "nobody waits for the store, which is full", ack_async,
           (1, 0, 0, 0), (2, 1, 0, 0)),
    ORDERS("stored_key_ack_refuse", "nobody waits for the store, and the key is free at once",
           ack_then_refuse, (1, 0, 0, 0), (2, 1, 0, 0)),
    ORDERS("stored_key_two_ack", "a key is taken over, refused and acked in a full store", two_ack,
           (1, 0, 0, 0), (2, 1, 0, 0)),
    ORDERS("stored_key_back", "a key is taken over from a job that is given back, and replaced",
           replace_back, (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("stored_key_back_early", "the same, for the earlier deadline", earliest_back,
           (1, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("stored_key_back_cancel", "the same, cancelled by the key", cancel_key_back,
           (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("stored_key_update", "a job is replaced and updated", replace_update, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_key_update_full", "one of both is refused", update_full, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_update_take", "a job is updated and taken", update_take, (2, 0, 0, 0),
           (3, 1, 0, 0)),
    ORDERS("stored_amend_reserve", "a refused change of a job that is reserved", amend_reserve,
           (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("stored_update_doubt", "an update or a removal is in doubt", update_doubt, (1, 0, 1, 0),
           (2, 1, 1, 0)),
    ORDERS("stored_update_cancel", "a refused update of a job that is cancelled", update_cancel,
           (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("stored_take_cancel", "a taker is refused the job, which is cancelled", take_cancel,
           (2, 0, 0, 0), (3, 1, 0, 0)),
    ORDERS("stored_update_nack", "a job is given back and updated, in doubt", update_nack,
           (1, 0, 1, 0), (2, 1, 1, 0)),
    { .name = NULL },
};
