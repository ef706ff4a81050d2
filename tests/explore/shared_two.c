/* shared_two.c - scenarios of two queues on one store, as two processes have them.
 *
 * Each lease is handed out once, by either; of those who answer for the job one is told that it is
 * done; and nobody waits in one queue for what the other was rung for and does not take.
 */
#include "acts.h"
#include "lab/take.h"
#include "shared_books.h"
#include "store/share.h"

#define LEASE    DUE_MS(10)
#define PATIENCE DUE_MS(5) /* with the store */
#define HANDED   4u

struct pair {
    due_queue *q[SHARED_QUEUES];
    struct shared_shelf shelf[SHARED_QUEUES];
    uint64_t handed[HANDED];
    unsigned hands;
    unsigned acks;            /* that were told that it is done */
    struct due__bell bell[2]; /* rung when the first, and when the second has it */
    bool skewed;              /* the store's clock is not ours */
};

static struct pair *pair;

/* ---- Threads ---- */

static bool late(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_EINDOUBT || rc == DUE_EAGAIN || rc == DUE_ESTORE;
}

/* The lease of a later claim is a higher one. */
static void hand(uint64_t lease)
{
    for (unsigned i = 0; i < pair->hands; i++)
        explore_check(pair->handed[i] != lease, "lease %llu is handed out twice",
                      (unsigned long long)lease);
    explore_check(pair->hands < HANDED, "too many hand-overs");
    pair->handed[pair->hands++] = lease;
}

/* The first waits for the second, if the store's clock lets that have it. */
static void tell(unsigned n)
{
    due__bell_ring(&pair->bell[n]);
    if (n == 0 && pair->skewed)
        due__bell_wait(&pair->bell[1], explore_now() + LEASE - 2, false);
}

static void end_lease(void *arg)
{
    (void)arg;
    if (due__bell_wait(&pair->bell[0], explore_now() + DUE_S(2), false))
        shared_over(&pair->shelf[0], 0);
}

static void reserve_and_ack(void *queue)
{
    due_job job;
    int rc = take_leased(pair->q[(uintptr_t)queue], &job, LEASE, DUE_S(1));

    explore_note("reserve: %s", due_error_name(rc));
    explore_check(rc == 0 || late(rc), "reserve answers %s", due_error_name(rc));
    if (rc != 0)
        return;
    uint64_t lease = job.token;
    const struct shared_job *in_store = shared_get(&pair->shelf[0], job.id);
    hand(lease);
    explore_check(in_store->held >= lease, "an earlier claim has a higher token");
    if (pair->hands <= 2)
        tell(pair->hands - 1);
    rc = due_ack(&job);
    explore_note("ack: %s", due_error_name(rc));
    explore_check(rc == 0 || rc == DUE_ESTALE || late(rc), "ack answers %s", due_error_name(rc));
    pair->acks += rc == 0;
    explore_check(pair->acks <= 1, "two have done it");
    if (rc == 0)
        explore_check(in_store->state == SHARED_DONE && in_store->held == lease,
                      "it was acked, and is in the store");
    if (job.queue != NULL)
        due_job_done(&job);
}

static void dequeue_within(void *queue, int64_t timeout_ns)
{
    due_job job;
    int rc = due_dequeue(pair->q[(uintptr_t)queue], &job, timeout_ns);

    explore_note("dequeue: %s", due_error_name(rc));
    explore_check(rc == 0 || late(rc), "dequeue answers %s", due_error_name(rc));
    if (rc != 0)
        return;
    const struct shared_job *in_store = shared_get(&pair->shelf[0], job.id);
    explore_check(in_store->state == SHARED_DONE, "it was dequeued, and is in the store");
    hand(in_store->held);
    due_job_done(&job);
}

static void dequeue(void *queue)
{
    dequeue_within(queue, DUE_S(1));
}

static void dequeue_briefly(void *queue)
{
    dequeue_within(queue, DUE_MS(1));
}

/* Just when that one's time is up. */
static void put_elsewhere(void *arg)
{
    struct due__bell sleeper;

    (void)arg;
    explore_check(due__bell_init(&sleeper) == 0, "a bell");
    due__bell_wait(&sleeper, explore_now() + DUE_MS(1), false);
    shared_put(&pair->shelf[0], 0, explore_now());
}

/* ---- What must hold ---- */

static void two_idle(void)
{
    for (unsigned i = 0; i < SHARED_QUEUES; i++) {
        const struct due_queue *q = pair->q[i];

        shared_rest(q, &pair->shelf[i], pair->skewed);
        if (q->commits->retry_at_ns != 0 || q->all == NULL)
            continue;
        explore_check(q->in_lines == 0, "a job lies in queue %u, and somebody waits there", i);
        explore_check(!shared_due(&pair->shelf[i]), "a job is due, and somebody waits in queue %u",
                      i);
    }
}

static void two_check(void)
{
    for (unsigned i = 0; i < SHARED_QUEUES; i++)
        shared_sums(pair->q[i]);
}

/* ---- Scenarios ---- */

static void open_pair(void)
{
    pair = explore_new(sizeof *pair);
    explore_check(due__bell_init(&pair->bell[0]) == 0 && due__bell_init(&pair->bell[1]) == 0,
                  "bells");
    for (unsigned i = 0; i < SHARED_QUEUES; i++) {
        shared_make(&pair->shelf[i], i > 0 ? &pair->shelf[0] : NULL);
        due_options o = {
            DUE_OPTIONS_INIT,    .allocator = &explore_allocator, .store = &pair->shelf[i].head,
            .share = DUE_SHARED, .store_timeout_ns = PATIENCE,    .reserve = 1
        };
        int rc = due_open(&pair->q[i], &o, NULL);
        explore_check(rc == 0, "open: %s", due_error_text(rc));
    }
}

/* One has it, and its lease ends, when the other claims it. */
static void lapse_setup(void)
{
    open_pair();
    shared_put(&pair->shelf[0], 0, explore_now());
    explore_instant(explore_now() + LEASE);
    explore_thread("one", reserve_and_ack, as_arg(0));
    explore_thread("other", reserve_and_ack, as_arg(1));
}

/* The same before it ends here: the first to answer is not the one who has it. */
static void stale_setup(void)
{
    open_pair();
    pair->skewed = true;
    shared_put(&pair->shelf[0], 0, explore_now());
    explore_thread("one", reserve_and_ack, as_arg(0));
    explore_thread("other", reserve_and_ack, as_arg(1));
    explore_thread("clock", end_lease, NULL);
}

/* One is rung, and has gone. */
static void ring_setup(void)
{
    open_pair();
    explore_thread("one", dequeue_briefly, as_arg(0));
    explore_thread("other", dequeue, as_arg(1));
    explore_thread("another process", put_elsewhere, NULL);
}

#define TWO(name_, about_, setup_, quick_, deep_, walks_)                                 \
    {                                                                                     \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = two_idle,          \
        .check = two_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = (walks_),                                                                \
    }

const struct explore_scenario explore_scenarios_shared_two[] = {
    TWO("shared_two_lapse", "two queues want a job, and the lease of one may end", lapse_setup,
        (0, 0, 1, 0), (1, 1, 1, 0), 1),
    TWO("shared_two_stale", "and by the store's clock it has ended", stale_setup, (0, 0, 0, 0),
        (1, 0, 0, 0), 1),
    TWO("shared_two_ring", "two queues wait, and one of them no more when it is rung", ring_setup,
        (0, 0, 0, 0), (1, 1, 0, 0), 4),
    { .name = NULL },
};
