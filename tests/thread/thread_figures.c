/* thread_figures.c - a file of figures, written as fast as it can be, and read by several at once:
 * what is taken for whole is of one set, and no number is ever followed by a smaller one.
 *
 * Each word of a set says which set it is of.  Loaders read the mapping, beginning anywhere; the
 * slow one of them stops in the middle until its place is written over, and has to see that.  The
 * other reader is that of `duectl top`.  It gives up after 100 tries, and a try fails only if a set
 * was written meanwhile: so the writer rests after fewer, until everybody has the last of them.
 *
 * Processors that are busy with something else would let it write each of them undisturbed.  So it
 * stops in the middle of a set now and then, where a page may not be written, until everybody has
 * looked twice: the one before is whole all the time.
 *
 * Before a set is written its stamp is, plainly.  Who has seen the number of the set (B1 of
 * figures_file.c), or any word of it (B2), must find the stamp.  So ThreadSanitizer tells of an
 * order that is too weak, also where the processor makes up for it.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab/crew.h"
#include "metrics/figures_file.h"
#include "os/atomic.h"
#include "top/top.h"

/* ThreadSanitizer has a lock of its own while it stores a word: there the writer must not halt. */
#if defined(__SANITIZE_THREAD__)
#define HALTS false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HALTS false
#endif
#endif
#ifndef HALTS
#define HALTS true
#endif

#define LOADERS 2  /* they load from the mapping */
#define BURST   90 /* sets at most, at a time: fewer than duectl has tries */
#define STAMPS  (1u << 20)

#define WORDS  (sizeof(struct due_figures) / sizeof(uint64_t))
#define MIDDLE (offsetof(struct due_figures, topic) / sizeof(uint64_t) / 2)

enum { DUECTL = LOADERS, READERS, SLOW = READERS, ALL }; /* nobody waits for the slow one */

struct reader {
    struct world *w;
    struct crew_thread thread;
    uint64_t seed;
    atomic_ulong looks;      /* at the file */
    atomic_ulong wanted;     /* for so many the writer waits */
    atomic_ulong whole;      /* sets that were taken */
    atomic_ulong refused;    /* looks after which the number was another one */
    atomic_ulong torn;       /* and the set was not of one piece */
    atomic_ullong taken;     /* the number of the last set that was taken */
    uint64_t number;         /* the last one that was seen */
    uint64_t set[WORDS];     /* what was read */
    struct due_figures real; /* what it ought to be */
};

struct world {
    struct due__figures_file file;
    char dir[32];
    char path[64];
    uint64_t seed;
    atomic_bool stop;
    atomic_ulong halts; /* in the middle of a set */
    char *barred;       /* the page that may not be written; NULL: all may */
    size_t page_bytes;
    uint64_t stamps[STAMPS]; /* of the first sets; each is written once, before its set */
    struct due_figures next;
    struct reader readers[ALL];
};

static struct world world;

/* ---- A set ---- */

/* Does this word say which set it is of? */
static bool says(size_t i)
{
    return i != offsetof(struct due_figures, number) / sizeof(uint64_t) &&
           (i < offsetof(struct due_figures, closed) / sizeof(uint64_t) ||
            i >= offsetof(struct due_figures, reserved) / sizeof(uint64_t));
}

static void make(struct due_figures *f, uint64_t number)
{
    for (size_t i = 0; i < WORDS; i++) {
        uint64_t word = number << 16 | i;

        memcpy((char *)f + i * sizeof word, &word, sizeof word);
    }
    f->number = number;
    f->closed = 0;
    f->measured = 1;
    f->stored = 1;
    f->topics_here = number % 3 ? DUE_FIGURES_TOPICS : (uint32_t)(number % DUE_FIGURES_TOPICS);
    f->topics = f->topics_here + (uint32_t)(number % 1000);
    f->pools_here = (uint32_t)(number % (DUE_FIGURES_POOLS + 1));
}

static size_t used_bytes(const struct due_figures *f)
{
    return offsetof(struct due_figures, topic) + f->topics_here * sizeof f->topic[0];
}

static void check_stamp(const struct world *w, uint64_t number)
{
    CREW_CHECK(number >= STAMPS || w->stamps[number] == ~number, ": set %llu, before it is",
               (unsigned long long)number);
}

static void check_number(struct reader *r, uint64_t number)
{
    CREW_CHECK(number >= r->number, ": %llu after %llu", (unsigned long long)number,
               (unsigned long long)r->number);
    r->number = number;
}

static void took(struct reader *r, uint64_t number)
{
    atomic_store(&r->taken, number);
    atomic_fetch_add(&r->whole, 1);
}

static uint64_t number_now(const struct due_figures_head *head)
{
    const uint64_t *number = &head->number; /* aligned, as the file is mapped */

    return due__load_acquire(number); /* B1, B2 of figures_file.c */
}

/* Until the number is at least that. */
static void until(const struct world *w, uint64_t number)
{
    while (number_now(w->file.head) < number && !atomic_load(&w->stop))
        sched_yield();
}

/* Until there is a set that this reader has not taken, or the writer wants him to look. */
static void until_worth_a_look(const struct reader *r)
{
    while (number_now(r->w->file.head) == atomic_load(&r->taken) &&
           atomic_load(&r->looks) >= atomic_load(&r->wanted) && !atomic_load(&r->w->stop))
        sched_yield();
}

/* ---- Written ---- */

static void put(struct world *w, uint64_t number)
{
    make(&w->next, number);
    if (number < STAMPS)
        w->stamps[number] = ~number;
    CREW_CHECK(due__figures_file_put(&w->file, &w->next), ": it is too short");
    CREW_CHECK(w->next.number == number, ": %llu", (unsigned long long)w->next.number);
}

/* Until each reader has begun to look since now, and has seen something. */
static void until_looked_at(struct world *w)
{
    for (int i = 0; i < READERS; i++)
        atomic_store(&w->readers[i].wanted, atomic_load(&w->readers[i].looks) + 2);
    for (int i = 0; i < READERS; i++) {
        struct reader *r = &w->readers[i];

        while (atomic_load(&r->looks) < atomic_load(&r->wanted) && !atomic_load(&w->stop))
            sched_yield();
    }
}

/* The writer has come to a page that it may not write. */
static void halt(int signal_number, siginfo_t *info, void *context)
{
    struct world *w = &world;
    char *at = info->si_addr;
    int err = errno;

    (void)context;
    if (w->barred == NULL || at < w->barred || at >= w->barred + w->page_bytes) {
        signal(signal_number, SIG_DFL); /* and again, in earnest */
        return;
    }
    until_looked_at(w);
    atomic_fetch_add(&w->halts, 1);
    mprotect(w->barred, w->page_bytes, PROT_READ | PROT_WRITE);
    errno = err;
}

/* It halts if anything of the set, or the number, is on the page that it may not write. */
static void put_with_a_halt(struct world *w, uint64_t number)
{
    if (!HALTS) {
        put(w, number);
        return;
    }
    size_t pages = (DUE__FIGURES_BYTES + w->page_bytes - 1) / w->page_bytes;

    w->barred = (char *)w->file.head + crew_below(&w->seed, pages) * w->page_bytes;
    CREW_CHECK(mprotect(w->barred, w->page_bytes, PROT_READ) == 0, ": errno %d", errno);
    put(w, number);
    CREW_CHECK(mprotect(w->barred, w->page_bytes, PROT_READ | PROT_WRITE) == 0, ": errno %d",
               errno);
    w->barred = NULL;
}

static int write_sets(void *arg)
{
    struct world *w = arg;
    uint64_t number = 1;

    while (!atomic_load(&w->stop)) {
        put_with_a_halt(w, ++number);
        for (uint64_t n = crew_below(&w->seed, BURST); n > 0; n--)
            put(w, ++number);
        for (int i = 0; i < READERS; i++)
            while (atomic_load(&w->readers[i].taken) < number && !atomic_load(&w->stop))
                sched_yield();
    }
    return 0;
}

/* ---- Loaded from the mapping ---- */

/* The words from @begin to @end, and the newest set that any of them is of. */
static uint64_t load_words(struct reader *r, const uint64_t *set, size_t begin, size_t end)
{
    uint64_t newest = 0;

    for (size_t i = begin; i < end; i++) {
        r->set[i] = due__load_acquire(&set[i]); /* B2 */
        if (says(i) && r->set[i] >> 16 > newest)
            newest = r->set[i] >> 16;
    }
    if (newest > 0)
        check_stamp(r->w, newest);
    return newest;
}

/* What was read between two looks at the number. */
static void judge(struct reader *r, uint64_t number, uint64_t again)
{
    make(&r->real, number);
    bool is_whole = memcmp(r->set, &r->real, used_bytes(&r->real)) == 0;
    if (number == again) {
        CREW_CHECK(is_whole, ": torn, set %llu", (unsigned long long)number);
        took(r, number);
        return;
    }
    atomic_fetch_add(&r->refused, 1);
    if (!is_whole)
        atomic_fetch_add(&r->torn, 1);
}

static void load_set(struct reader *r, size_t first, bool slow)
{
    const struct due_figures_head *head = r->w->file.head;
    uint64_t number = number_now(head);
    const uint64_t *set = (const uint64_t *)(head + 1) + (number % 2) * WORDS;

    check_number(r, number);
    check_stamp(r->w, number);
    uint64_t one = load_words(r, set, first, WORDS);
    if (slow)
        until(r->w, number + 2); /* its place is written over */
    uint64_t other = load_words(r, set, 0, first);
    uint64_t again = number_now(head);
    uint64_t newest = one > other ? one : other;
    CREW_CHECK(newest <= again + 1, ": words of set %llu, and the number is %llu",
               (unsigned long long)newest, (unsigned long long)again);
    check_number(r, again);
    judge(r, number, again);
}

static int load_sets(void *arg)
{
    struct reader *r = arg;

    while (!atomic_load(&r->w->stop)) {
        load_set(r, (size_t)crew_below(&r->seed, WORDS), false);
        atomic_fetch_add(&r->looks, 1);
        until_worth_a_look(r);
    }
    return 0;
}

static int load_slowly(void *arg)
{
    struct reader *r = arg;

    while (!atomic_load(&r->w->stop))
        load_set(r, MIDDLE, true);
    return 0;
}

/* ---- Read by duectl ---- */

/* It is for the dates of a program that has ended. */
const char *ctl_dump_date(char text[CTL_DUMP_DATE], int64_t ns)
{
    (void)text;
    (void)ns;
    CREW_CHECK(false, ": the program that writes has ended");
}

static bool same_counts(const struct top_counts *counts, const struct due_topic_stats *s)
{
    return counts->enqueued == s->enqueued && counts->dequeued == s->dequeued &&
           counts->acked == s->acked && counts->failed == s->retried + s->died &&
           counts->waiting == s->delayed + s->ready && counts->ready == s->ready &&
           counts->leased == s->leased && counts->dead == s->dead;
}

static void check_sample(const struct top_sample *s, const struct due_figures *f)
{
    CREW_CHECK(s->pid == f->pid && s->opened_ns == f->opened_ns, ": another program");
    CREW_CHECK(s->taken_ns == f->written_ns && s->monotonic_ns == f->monotonic_ns, ": times");
    CREW_CHECK(s->topics == f->topics && s->topics_here == f->topics_here, ": topics");
    CREW_CHECK(s->pools_here == f->pools_here, ": pools");
    CREW_CHECK(memcmp(s->queue, f->queue, sizeof s->queue - 1) == 0, ": another queue");
    CREW_CHECK(s->all.enqueued == f->stats.enqueued && s->all.dead == f->stats.dead, ": counts");
    CREW_CHECK(memcmp(s->late.bucket, f->late.bucket, sizeof f->late.bucket) == 0, ": lateness");
    for (uint32_t i = 0; i < f->pools_here; i++)
        CREW_CHECK(memcmp(&s->pool[i].stats, &f->pool[i].stats, sizeof f->pool[i].stats) == 0,
                   ": pool %u", i);
    for (uint32_t i = 0; i < f->topics_here; i++) {
        CREW_CHECK(memcmp(s->topic[i].name, f->topic[i].name, sizeof f->topic[i].name - 1) == 0,
                   ": topic %u", i);
        CREW_CHECK(same_counts(&s->topic[i].counts, &f->topic[i].stats), ": topic %u", i);
    }
}

static int read_by_duectl(void *arg)
{
    static struct top_sample sample;
    struct reader *r = arg;
    struct top_file file = { .path = r->w->path, .named = r->w->path, .fd = -1 };

    while (!atomic_load(&r->w->stop)) {
        CREW_CHECK(top_file_take(&file, &sample) == TOP_TAKEN, ": no set");
        check_number(r, sample.number);
        make(&r->real, sample.number);
        check_sample(&sample, &r->real);
        took(r, sample.number);
        atomic_fetch_add(&r->looks, 1);
        until_worth_a_look(r);
    }
    top_file_close(&file);
    return 0;
}

/* ---- All of it ---- */

static void open_file(struct world *w)
{
    strcpy(w->dir, "/tmp/due_figures_XXXXXX");
    CREW_CHECK(mkdtemp(w->dir) != NULL, ": %s", w->dir);
    snprintf(w->path, sizeof w->path, "%s/figures", w->dir);
    CREW_CHECK(due__figures_file_open(&w->file, w->path) == 0, ": %s", w->path);
    put(w, 1);
    w->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = halt, .sa_flags = SA_SIGINFO }, NULL);
}

static bool has_all(struct world *w)
{
    for (int i = 0; i < READERS; i++)
        if (atomic_load(&w->readers[i].whole) == 0)
            return false;
    return (atomic_load(&w->halts) > 0 || !HALTS) && atomic_load(&w->readers[SLOW].torn) > 0;
}

static void tell(struct world *w)
{
    unsigned long whole = 0;
    unsigned long refused = 0;
    unsigned long torn = 0;

    for (int i = 0; i < ALL; i++) {
        whole += atomic_load(&w->readers[i].whole);
        refused += atomic_load(&w->readers[i].refused);
        torn += atomic_load(&w->readers[i].torn);
    }
    printf("thread_figures: %llu sets, %lu halts; %lu were read whole, %lu of them by duectl; %lu "
           "looks were "
           "too slow, and %lu of those found a torn one\n",
           (unsigned long long)w->next.number, atomic_load(&w->halts), whole,
           atomic_load(&w->readers[DUECTL].whole), refused, torn);
}

int main(int argc, char **argv)
{
    int (*const run[ALL])(void *) = { load_sets, load_sets, read_by_duectl, load_slowly };
    struct crew_options o = crew_options(argc, argv, 2);
    struct world *w = &world;
    struct crew_thread writer;

    w->seed = o.seed;
    open_file(w);
    for (int i = 0; i < ALL; i++) {
        w->readers[i].w = w;
        w->readers[i].seed = o.seed + (uint64_t)i + 1;
        crew_go(&w->readers[i].thread, run[i], &w->readers[i]);
    }
    crew_go(&writer, write_sets, w);
    crew_doing("reading what is being written");
    crew_sleep(o.ns);
    crew_doing(
        "waiting until the writer has halted, each reader has a set, and the slow one a torn one");
    while (!has_all(w))
        sched_yield();
    atomic_store(&w->stop, true);
    crew_join(&writer);
    for (int i = 0; i < ALL; i++)
        crew_join(&w->readers[i].thread);
    due__figures_file_close(&w->file, true);
    CREW_CHECK(rmdir(w->dir) == 0, ": %s", w->dir);
    tell(w);
    return 0;
}
