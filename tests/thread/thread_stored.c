/* thread_stored.c - a stored queue under many threads, on a store that fails now and then: a job
 * that was accepted is handed out once, cancelled once, or on the disk at the end; one that was
 * refused is nowhere.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/memory_store.h"
#include "lab/take.h"

#define JOBS (1u << 14) /* of one round, at most */

enum told { NOTHING, ACCEPTED, REFUSED, UNSURE };

struct fate {
    atomic_uint told;      /* what its producer was told */
    atomic_uint gone;      /* handed out for good, acked or cancelled, as the caller was told */
    atomic_uint unsure;    /* a call that would have ended it was in doubt, or refused to nobody */
    atomic_uint discarded; /* shown to on_discard */
    atomic_uint holders;   /* reserved now */
    due_id id;
    bool on_disk;
};

static struct fate fates[JOBS];
static atomic_uint named[JOBS]; /* 0, or 1 and the number of a job whose producer was told */

struct world {
    due_queue *q;
    struct memory_disk *disk;
    due_store *store;
    bool async;
    bool hasty;           /* closed while the store fails, without patience */
    atomic_uint doubtful; /* jobs that may have left the store without a taker */
    atomic_uint next;
    atomic_bool stop;
    int64_t end_ns;
    uint64_t seed;
};

static uint64_t own_seed(struct world *w, uint64_t salt)
{
    return w->seed * 1000003 + salt + (uint64_t)(uintptr_t)&salt;
}

static struct fate *fate_of(const void *data, size_t len)
{
    uint32_t n;

    CREW_CHECK(len >= sizeof n, ": %zu bytes", len);
    memcpy(&n, data, sizeof n);
    CREW_CHECK(n < JOBS, ": job %u", n);
    return &fates[n];
}

/* Where a job stands in named: a queue counts its jobs in their ids. */
static atomic_uint *name_of(due_id id)
{
    uint32_t sequence = 0;

    for (int i = 10; i < DUE_STORE_ID_BYTES; i++)
        sequence = sequence << 8 | id.byte[i];
    return &named[sequence % JOBS];
}

static struct fate *fate_named(due_id id)
{
    uint32_t n = atomic_load(name_of(id));

    return n > 0 && due_id_equal(fates[n - 1].id, id) ? &fates[n - 1] : NULL;
}

static void on_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    atomic_fetch_add(&fate_of(job->data, job->len)->discarded, 1);
}

/* A change for which nobody waits was refused.  What it was is not known. */
static void on_settled(void *ctx, due_id id, int rc)
{
    (void)ctx;
    if (rc == 0)
        return;
    for (int i = 0; i < 1000; i++) { /* its producer may not have the id yet */
        struct fate *f = fate_named(id);

        if (f != NULL) {
            atomic_store(&f->unsure, 1);
            return;
        }
        crew_sleep(DUE_US(10));
    }
}

static bool away(int rc)
{
    return rc == DUE_ETIMEDOUT || rc == DUE_ESTORE || rc == DUE_ENOSPC || rc == DUE_ECLOSED;
}

/* ---- Threads ---- */

static int64_t choose_delay(uint64_t *seed)
{
    return crew_below(seed, 2) == 0 ? 0 : (int64_t)crew_below(seed, 3000000);
}

static int produce(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w, 1);
    unsigned char bytes[80] = { 0 };
    uint32_t n;

    while (crew_now_ns() < w->end_ns && (n = atomic_fetch_add(&w->next, 1)) < JOBS) {
        due_spec spec = { DUE_SPEC_INIT, .delay_ns = choose_delay(&seed), .data = bytes };
        due_id id = { { 0 } };

        memcpy(bytes, &n, sizeof n);
        spec.len = crew_below(&seed, 3) == 0 ? sizeof bytes : sizeof n;
        spec.priority = (int)(n % 5);
        int rc = due_enqueue(w->q, &spec, 0, &id);
        CREW_CHECK(rc == 0 || rc == DUE_EINDOUBT || away(rc), ": %s", due_error_name(rc));
        fates[n].id = id;
        atomic_store(&fates[n].told, rc == 0 ? ACCEPTED : rc == DUE_EINDOUBT ? UNSURE : REFUSED);
        atomic_store(name_of(id), n + 1);
    }
    return 0;
}

static void check_early(struct world *w, const due_job *job)
{
    int64_t now = due_now(w->q);

    CREW_CHECK(job->deadline_ns <= now, ": %lld ns", (long long)(job->deadline_ns - now));
}

static int consume(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w, 2);
    due_job jobs[8];
    bool left = false;
    int rc = 0;

    while (rc != DUE_ECLOSED) {
        rc = take_some(w->q, NULL, 0, jobs, 1 + (size_t)crew_below(&seed, 8),
                       crew_below(&seed, 2) == 0 ? DUE_MS(5) : 0);
        CREW_CHECK(rc > 0 || away(rc) || rc == DUE_EAGAIN || rc == DUE_EINDOUBT, ": %s",
                   due_error_name(rc));
        /* What was sent when time was up is the next taker's, or put back, unless the queue closes
         * before its end is known. */
        bool lost = rc == DUE_EINDOUBT || (rc == DUE_ECLOSED && left);
        atomic_fetch_add(&w->doubtful, w->hasty && lost ? 8u : 0u);
        left = rc == DUE_ETIMEDOUT || rc == DUE_EAGAIN;
        for (int i = 0; i < rc; i++) {
            struct fate *f = fate_of(jobs[i].data, jobs[i].len);

            check_early(w, &jobs[i]);
            CREW_CHECK(atomic_load(&f->holders) == 0 || atomic_load(&f->unsure), ": taken");
            atomic_fetch_add(&f->gone, 1);
            due_job_done(&jobs[i]);
        }
    }
    return 0;
}

/* What becomes of a reserved job. */
static void handle(struct world *w, uint64_t *seed, due_job *job)
{
    struct fate *f = fate_of(job->data, job->len);
    bool ack = crew_below(seed, 3) != 0;
    int rc;

    check_early(w, job);
    CREW_CHECK(atomic_fetch_add(&f->holders, 1) == 0 || atomic_load(&f->unsure), ": twice");
    if (crew_below(seed, 8) == 0) {
        rc = due_extend(job, DUE_S(60));
        CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    }
    do {
        atomic_fetch_sub(&f->holders, 1); /* it may be handed out before the answer is here */
        if (ack)
            atomic_fetch_add(&f->gone, 1);
        rc = ack ? due_ack(job) : due_nack(job, choose_delay(seed));
        CREW_CHECK(rc == 0 || rc == DUE_EINDOUBT || away(rc), ": %s", due_error_name(rc));
        if (rc == DUE_EINDOUBT)
            atomic_store(&f->unsure, 1);
        if (ack && rc != 0)
            atomic_fetch_sub(&f->gone, 1);
        if (away(rc))
            atomic_fetch_add(&f->holders, 1);
    } while (away(rc) && rc != DUE_ECLOSED);
    if (rc == DUE_ECLOSED)
        due_job_done(job);
}

static int reserve(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w, 3);
    due_job job;
    int rc = 0;

    while (rc != DUE_ECLOSED) {
        rc = take_leased(w->q, &job, DUE_S(60), crew_below(&seed, 2) == 0 ? DUE_MS(5) : 0);
        /* That it was handed out is in doubt only if the queue closes meanwhile. */
        CREW_CHECK(rc == 0 || away(rc) || rc == DUE_EAGAIN || (w->hasty && rc == DUE_EINDOUBT),
                   ": %s", due_error_name(rc));
        if (rc == 0)
            handle(w, &seed, &job);
    }
    return 0;
}

static void cancel(struct world *w, struct fate *f, bool lent)
{
    due_job job = { .queue = NULL };
    int rc = due_cancel(w->q, f->id, lent ? &job : NULL);

    CREW_CHECK(rc == 0 || rc == DUE_EINDOUBT || rc == DUE_EBUSY || rc == DUE_ENOENT || away(rc),
               ": %s", due_error_name(rc));
    if (rc == 0)
        atomic_fetch_add(&f->gone, 1);
    if (rc == DUE_EINDOUBT || rc == DUE_EBUSY) /* who has it may give it back, and it is gone */
        atomic_store(&f->unsure, 1);
    if (rc == 0 && lent)
        due_job_done(&job);
}

static int meddle(void *arg)
{
    struct world *w = arg;
    uint64_t seed = own_seed(w, 4);
    due_info info;

    while (!atomic_load(&w->stop)) {
        uint32_t made = atomic_load(&w->next);
        uint32_t n = (made < JOBS ? made : JOBS) - 1 - (uint32_t)crew_below(&seed, 64);
        int rc = 0;

        if (n >= JOBS || atomic_load(&fates[n].told) != ACCEPTED)
            continue;
        switch (crew_below(&seed, 6)) {
        case 0:
            rc = due_reschedule(w->q, fates[n].id, due_now(w->q) + choose_delay(&seed));
            break;
        case 1:
            rc = due_promote(w->q, fates[n].id);
            break;
        case 2:
            rc = due_find(w->q, fates[n].id, &info);
            break;
        case 3:
            rc = due_flush(w->q, DUE_MS(2));
            break;
        default:
            cancel(w, &fates[n], crew_below(&seed, 2) == 0);
        }
        CREW_CHECK(rc == 0 || rc == DUE_EINDOUBT || rc == DUE_EBUSY || rc == DUE_ENOENT || away(rc),
                   ": %s", due_error_name(rc));
    }
    return 0;
}

/* ---- The end ---- */

static int on_disk(void *ctx, const due_record *r)
{
    struct fate *f = fate_of(r->data, r->len);

    (void)ctx;
    CREW_CHECK(!f->on_disk, ": a job is twice on the disk");
    f->on_disk = true;
    return 0;
}

static void add_up(struct world *w, uint32_t made)
{
    unsigned doubtful = atomic_load(&w->doubtful);

    memory_disk_each(w->disk, on_disk, NULL);
    for (uint32_t n = 0; n < made; n++) {
        struct fate *f = &fates[n];
        unsigned told = atomic_load(&f->told);
        unsigned ends = atomic_load(&f->gone) + f->on_disk + atomic_load(&f->discarded);
        bool sure = told == ACCEPTED && !atomic_load(&f->unsure) && !(w->hasty && w->async);

        CREW_CHECK(atomic_load(&f->gone) <= 1, ": job %u left %u times", n, atomic_load(&f->gone));
        CREW_CHECK(told != REFUSED || ends == 0, ": job %u was refused, and is %u", n, ends);
        bool shown = f->on_disk && atomic_load(&f->discarded) > 0; /* to be sure */

        if (sure && (ends == 0 || (shown && ends == 2)) && doubtful > 0)
            doubtful--;
        else if (sure)
            CREW_CHECK(ends == 1, ": job %u gone %u on disk %d discarded %u%s%s", n,
                       atomic_load(&f->gone), f->on_disk, atomic_load(&f->discarded),
                       w->hasty ? ", hasty" : "", w->async ? ", async" : "");
    }
}

static void check_stats(struct world *w)
{
    struct due_stats s;
    int rc = due_stats_read(w->q, &s);

    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    uint64_t sum = s.dequeued + s.cancelled + s.discarded + s.acked + s.kept + s.leased;
    CREW_CHECK(s.enqueued == sum, ": %llu, not %llu", (unsigned long long)s.enqueued,
               (unsigned long long)sum);
    CREW_CHECK(s.waiting == 0 && s.lent == 0 && s.mended == 0, ": %llu %llu %llu",
               (unsigned long long)s.waiting, (unsigned long long)s.lent,
               (unsigned long long)s.mended);
    CREW_CHECK(s.unsettled_bytes == 0, ": %llu", (unsigned long long)s.unsettled_bytes);
}

static void world_open(struct world *w, unsigned kind)
{
    struct memory_dice dice = { .seed = w->seed };
    due_options o = { DUE_OPTIONS_INIT, .on_discard = on_discard, .on_settled = on_settled };

    memset(fates, 0, sizeof fates);
    memset(named, 0, sizeof named);
    w->disk = memory_disk_new(NULL);
    w->async = (kind & 1) != 0;
    o.ctx = w;
    o.store = w->store = memory_store_new(w->disk);
    o.confirm = w->async ? DUE_CONFIRM_ASYNC : DUE_CONFIRM_SYNC;
    o.proxies = kind & 2 ? DUE_PROXIES_ALWAYS : DUE_PROXIES_ADAPTIVE;
    o.store_timeout_ns = DUE_MS(4);
    o.unsettled_bytes_max = kind & 16 ? 100 : 0; /* one large job, or some small ones */
    w->q = crew_open(&o);
    if (kind & 4) {
        dice.per_mille[MEMORY_AWAY] = 20;
        dice.per_mille[MEMORY_DOUBT_NOT] = 20;
        dice.per_mille[MEMORY_DOUBT_LANDED] = 20;
        dice.per_mille[MEMORY_FULL] = 20;
        memory_store_dice(w->store, &dice);
    }
    w->hasty = (kind & 8) != 0;
}

static uint32_t round_of(unsigned kind, int64_t ns, uint64_t seed)
{
    static int (*const runs[])(void *) = { produce, produce, consume, reserve, meddle };
    struct world w = { .seed = seed, .end_ns = crew_now_ns() + ns };
    const struct memory_dice none = { .seed = 1 };
    struct crew_thread threads[5];

    world_open(&w, kind);
    for (size_t i = 0; i < 5; i++)
        crew_go(&threads[i], runs[i], &w);
    crew_doing("producing");
    if (!w.hasty) {
        crew_join(&threads[0]);
        crew_join(&threads[1]);
        memory_store_dice(w.store, &none);
    } else {
        crew_sleep(ns / 2); /* producers race with close */
    }
    crew_doing("closing");
    int rc = due_close(w.q, DUE_CLOSE_DISCARD, w.hasty ? 0 : DUE_S(60));
    if (rc == DUE_ETIMEDOUT)
        rc = due_close(w.q, DUE_CLOSE_DISCARD, DUE_S(60));
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    atomic_store(&w.stop, true);
    crew_doing("joining");
    for (size_t i = w.hasty ? 0 : 2; i < 5; i++)
        crew_join(&threads[i]);
    check_stats(&w);
    uint32_t made = atomic_load(&w.next) < JOBS ? atomic_load(&w.next) : JOBS;
    rc = due_free(w.q);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    add_up(&w, made);
    CREW_CHECK(memory_disk_wrong(w.disk) == NULL, ": %s", memory_disk_wrong(w.disk));
    memory_disk_free(w.disk);
    return made;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 2);
    int64_t end = crew_now_ns() + o.ns;
    uint64_t jobs = 0;

    for (unsigned i = 0; i < 32 || crew_now_ns() < end; i++)
        jobs += round_of(i % 32, o.ns / 20, o.seed + i);
    printf("thread_stored: %llu jobs, each where it was told to be\n", (unsigned long long)jobs);
    return 0;
}
