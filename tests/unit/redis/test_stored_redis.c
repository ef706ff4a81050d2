/* A queue stored in Redis: what comes back, and what does not grow. */
#ifdef DUE_HAVE_REDIS

#include <dirent.h>

#include "lab/fault_proxy.h"
#include "lab/redis/stored_redis_lab.h"
#include "lab/take.h"

/* ---- What comes back ---- */

STORED_TEST(stored_redis, loads_of_none_and_one_and_about_a_page_are_whole)
{
    static const uint32_t sizes[] = { 0, 1, 255, 256, 257 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct lab lab = OPEN(.with.confirm = DUE_CONFIRM_ASYNC);
        uint32_t n = sizes[i];
        uint64_t sum = 0;
        due_job job;

        put_many(&lab, n);
        lab_close(&lab);
        lab = OPEN(.start_ns = 1000);
        cr_expect_eq(lab_stats(&lab).restored, (uint64_t)n);
        int64_t last = 0;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t number;

            cr_assert_eq(lab_take(&lab, &job), 0);
            memcpy(&number, job.data, sizeof number);
            sum += number;
            cr_expect_geq(job.deadline_ns, last);
            last = job.deadline_ns;
            due_job_done(&job);
        }
        cr_expect_eq(sum, (uint64_t)n * (n > 0 ? n - 1 : 0) / 2);
        cr_expect_eq(lab_take(&lab, &job), DUE_EAGAIN);
        lab_close(&lab);
        lab = OPEN(.start_ns = 1000);
        cr_expect_eq(lab_stats(&lab).restored, 0u);
        lab_close(&lab);
    }
}

/* ---- Random queues ---- */

#define MODEL 400

struct model {
    due_id id;
    int64_t deadline_ns;
    int64_t until_ns;
    int priority;
    int topic; /* index */
    uint32_t attempts;
    uint32_t failures;
    size_t len;
    unsigned char bytes[300];
    bool here;
    bool fixed; /* it was never moved: it stands where it was put */
};

static const char *const topic_names[] = { "", "mail", "a topic\r\n{x}", "\xff\xfe" };
static struct model model[MODEL];

static void topics_of(struct lab *lab, int topics[4])
{
    for (int i = 0; i < 4; i++)
        topics[i] = lab_topic(lab, topic_names[i]);
}

static void fill_model(struct lab *lab, const int topics[4], uint64_t *seed)
{
    for (size_t i = 0; i < MODEL; i++) {
        struct model *m = &model[i];

        *m = (struct model){ .deadline_ns = 1000 + (int64_t)crew_below(seed, 40) * 250,
                             .priority = (int)crew_below(seed, 4) * 85,
                             .topic = (int)crew_below(seed, 4),
                             .len = crew_below(seed, sizeof m->bytes),
                             .here = true,
                             .fixed = true };
        m->until_ns = m->deadline_ns;
        for (size_t k = 0; k < m->len; k++)
            m->bytes[k] = (unsigned char)crew_random(seed);
        m->id = lab_enqueue(lab, NULL, .at_ns = m->deadline_ns, .priority = m->priority,
                            .topic = topics[m->topic], .data = m->len > 0 ? m->bytes : NULL,
                            .len = m->len);
    }
}

static struct model *of_id(due_id id)
{
    for (size_t i = 0; i < MODEL; i++)
        if (due_id_equal(model[i].id, id))
            return &model[i];
    cr_assert(false, "an id that nobody was told");
    return NULL;
}

/* Some are moved, some cancelled, some handed out and given back. */
static void meddle(struct lab *lab, uint64_t *seed)
{
    for (size_t i = 0; i < MODEL; i += 1 + crew_below(seed, 5)) {
        struct model *m = &model[i];

        if (crew_below(seed, 2) == 0) {
            m->until_ns = m->deadline_ns = 20000 + (int64_t)crew_below(seed, 5000);
            m->fixed = false;
            cr_assert_eq(due_reschedule(lab->q, m->id, m->deadline_ns), 0);
        } else {
            m->here = false;
            cr_assert_eq(due_cancel(lab->q, m->id, NULL), 0);
        }
    }
    lab_turn_to(lab, 3000);
    for (int i = 0; i < 40; i++) {
        due_job job;
        int64_t delay = 30000 + (int64_t)crew_below(seed, 3000);

        if (take_leased(lab->q, &job, 100000, 0) != 0)
            break;
        struct model *m = of_id(job.id);
        m->attempts++;
        m->failures++;
        m->until_ns = 3000 + delay;
        m->fixed = false;
        cr_assert_eq(due_nack(&job, delay), 0);
    }
}

static size_t count_here(void)
{
    size_t n = 0;

    for (size_t i = 0; i < MODEL; i++)
        n += model[i].here;
    return n;
}

/* What is listed is what was put, without taking any of it. */
static void check_listed(struct lab *lab, const int topics[4])
{
    due_info infos[64];
    uint64_t cursor = 0;
    size_t seen = 0;

    for (int n; (n = due_list(lab->q, &cursor, infos, 64)) > 0;)
        for (int i = 0; i < n; i++, seen++) {
            const struct model *m = of_id(infos[i].id);

            cr_expect(m->here);
            cr_expect_eq(infos[i].priority, m->priority);
            cr_expect_eq(infos[i].topic, topics[m->topic]);
            cr_expect_eq(infos[i].len, m->len);
        }
    cr_expect_eq(seen, count_here());
}

/* Earlier, or higher, or put in before. */
static bool stands_before(const struct model *a, const struct model *b)
{
    if (a->until_ns != b->until_ns)
        return a->until_ns < b->until_ns;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a < b || !a->fixed || !b->fixed;
}

static void check_taken(struct lab *lab)
{
    const struct model *last[4] = { NULL };
    size_t seen = 0;
    due_job job;

    for (; take_leased(lab->q, &job, 1000, 0) == 0; seen++) {
        struct model *m = of_id(job.id);

        cr_expect(m->here);
        m->here = false;
        cr_expect_eq(job.deadline_ns, m->deadline_ns);
        cr_expect_eq(job.attempts, m->attempts + 1);
        cr_expect_eq(job.failures, m->failures);
        cr_assert_eq(job.len, m->len);
        cr_expect(m->len == 0 || memcmp(job.data, m->bytes, m->len) == 0);
        cr_expect_str_eq(due_topic_name(lab->q, job.topic), topic_names[m->topic]);
        cr_expect(last[m->topic] == NULL || stands_before(last[m->topic], m), "out of order");
        last[m->topic] = m;
        cr_assert_eq(due_ack(&job), 0);
    }
    cr_expect_eq(count_here(), 0u);
}

STORED_TEST(stored_redis, restored_is_what_was_stored_and_twice_as_once)
{
    for (uint64_t round = 1; round <= 5; round++) {
        struct lab lab = OPEN(.start_ns = 1);
        uint64_t seed = round;
        int topics[4];

        topics_of(&lab, topics);
        fill_model(&lab, topics, &seed);
        meddle(&lab, &seed);
        size_t n = count_here();
        for (int times = 0; times < 2; times++) {
            lab_close(&lab);
            lab = OPEN(.start_ns = 3000);
            cr_expect_eq(lab_stats(&lab).restored, n);
            topics_of(&lab, topics);
            check_listed(&lab, topics);
        }
        lab_turn_to(&lab, 100000);
        check_taken(&lab);
        lab_close(&lab);
    }
}

STORED_TEST(stored_redis, a_restart_at_any_point_of_a_delay_is_never_early)
{
    const int64_t start = INT64_C(1700000000000000000);
    const int64_t due = start + 987654321;
    due_clock *clock = due_clock_manual(start);
    struct lab lab = OPEN(.clock = clock);

    lab_enqueue(&lab, "tea", .at_ns = due);
    for (int point = 0; point <= 50; point++) {
        int64_t at = point < 50 ? start + (due - start) / 50 * point : due - 1;

        lab_close(&lab);
        cr_assert_eq(due_clock_turn_to(clock, at), 0);
        lab = OPEN(.clock = clock);
        cr_expect_eq(lab_stats(&lab).restored, 1u);
        cr_expect_null(lab_dequeue(&lab), "early, at point %d", point);
        cr_expect_eq(due_next_deadline(lab.q), due);
    }
    cr_assert_eq(due_clock_turn_to(clock, due), 0);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
    cr_expect_eq(due_clock_free(clock), 0);
}

STORED_TEST(stored_redis, payloads_come_back_byte_for_byte)
{
    static const char *const texts[] = { "", "\r\n", "$-1\r\n", "*1\r\n$8\r\nFLUSHALL\r\n",
                                         "+OK\r\n-ERR\r\n:1\r\n" };
    static const char nul[] = "\0a\0\0\xff\0";
    const size_t large = 1 << 20;
    unsigned char *bytes = malloc(large);
    struct lab lab = OPEN();
    due_job job;

    for (size_t i = 0; i < large; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 11);
    for (int i = 0; i < 5; i++)
        lab_enqueue(&lab, texts[i], .at_ns = 10 + i);
    lab_enqueue(&lab, NULL, .at_ns = 20, .data = nul, .len = sizeof nul);
    lab_enqueue(&lab, NULL, .at_ns = 21, .data = bytes, .len = large);
    lab_close(&lab);
    lab = OPEN(.start_ns = 100);
    for (int i = 0; i < 5; i++)
        cr_expect_str_eq(lab_dequeue(&lab), texts[i]);
    cr_assert_eq(lab_take(&lab, &job), 0);
    cr_expect(job.len == sizeof nul && memcmp(job.data, nul, sizeof nul) == 0);
    due_job_done(&job);
    cr_assert_eq(lab_take(&lab, &job), 0);
    cr_expect(job.len == large && memcmp(job.data, bytes, large) == 0);
    due_job_done(&job);
    lab_close(&lab);
    free(bytes);
}

/* ---- What does not grow ---- */

static long number_in(const char *answer)
{
    cr_assert_eq(answer[0], ':', "%s", answer);
    return strtol(answer + 1, NULL, 10);
}

/* Keys, and the bytes of all of them together. */
static void measure(long figures[2])
{
    static const char *const keys[] = { "j",  "a",       "t:",     "dead", "k",
                                        "kx", "writers", "topics", "meta", "fence" };

    figures[0] = number_in(ASK("DBSIZE"));
    figures[1] = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char key[32];

        snprintf(key, sizeof key, "due:{queue}:%s", keys[i]);
        const char *bytes = ASK("MEMORY", "USAGE", key, "SAMPLES", "0");
        figures[1] += bytes[0] == ':' ? number_in(bytes) : 0; /* else there is none */
    }
}

/* One cycle of a hundred jobs: put, moved, given back, buried, kicked and dropped. */
static void cycle(struct lab *lab, due_spec specs[100], long figures[2])
{
    due_id ids[100];
    due_job job;
    uint64_t kicked = 0;

    cr_assert_eq(due_enqueue_batch(lab->q, specs, 100, 0, ids), 100);
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(due_reschedule(lab->q, ids[i], i < 10 ? 0 : 5000 + i), 0);
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(take_leased(lab->q, &job, DUE_S(60), 0), 0);
        cr_assert_eq(i % 2 == 0 ? due_nack(&job, 5000) : due_bury(&job, "why"), 0);
    }
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
    measure(figures);
    cr_assert_eq(due_kick_all(lab->q, DUE_ALL_TOPICS, &kicked), 0);
    cr_assert_eq(kicked, 5u);
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
    cr_assert_eq(due_cancel_batch(lab->q, ids, 100, NULL), 100);
    cr_assert_eq(due_flush(lab->q, DUE_S(30)), 0);
}

/* Redis 7.0 needs none of it; others may be in the middle of making a table smaller.  A byte for
 * each cycle would be fifty times as much. */
#define SLACK 2000

STORED_TEST(stored_redis, a_hundred_thousand_cycles_leave_keys_and_bytes_as_they_were)
{
    struct lab lab = OPEN(.with.confirm = DUE_CONFIRM_ASYNC);
    due_extra more[100];
    due_spec specs[100];
    char keys[100];
    long before[2] = { 0, 0 };
    long after[2] = { 0, 0 };

    for (int i = 0; i < 100; i++) {
        keys[i] = (char)i;
        more[i] = (due_extra){ DUE_EXTRA_INIT, .key = &keys[i], .key_len = 1 };
        specs[i] = (due_spec){ DUE_SPEC_INIT, .at_ns = 1000 + i, .data = "payload", .len = 7 };
        specs[i].more = i % 4 == 0 ? &more[i] : NULL;
    }
    for (int i = 0; i < 1000; i++) {
        cycle(&lab, specs, i < 10 ? before : after);
        if (i % 100 == 0)
            cr_expect_str_eq(ASK("EXISTS", "due:{queue}:j", "due:{queue}:t:", "due:{queue}:dead",
                                 "due:{queue}:k", "due:{queue}:kx"),
                             ":0\r\n");
    }
    cr_expect_eq(after[0], before[0], "%ld keys, then %ld", before[0], after[0]);
    cr_expect_leq(after[1], before[1] + SLACK, "%ld bytes, then %ld", before[1], after[1]);
    cr_expect_gt(before[1], 10000, "%ld bytes", before[1]);
    lab_close(&lab);
}

#define YEAR (DUE_S(86400) * 365)

/* Jobs of every kind: one that waits, was given back, is dead, has a key, has left one behind. */
static void put_every_kind(struct lab *lab)
{
    due_job job;

    lab_enqueue(lab, "back", .at_ns = 1);
    cr_assert_eq(take_leased(lab->q, &job, DUE_S(1), 0), 0);
    cr_assert_eq(due_nack(&job, DUE_S(1)), 0);
    lab_enqueue(lab, "dead", .at_ns = 1, .topic = lab_topic(lab, "mail"));
    cr_assert_eq(take_leased(lab->q, &job, DUE_S(1), 0), 0);
    cr_assert_eq(due_bury(&job, "why"), 0);
    lab_enqueue(lab, "kept", .at_ns = 1,
                .more = EXTRA(.key = "k", .key_len = 1, .keep_key_ns = 2 * YEAR));
    cr_expect_str_eq(lab_dequeue(lab), "kept");
    lab_enqueue(lab, "tea", .at_ns = DUE_S(5),
                .more = EXTRA(.key = "t", .key_len = 1, .headers = "h", .headers_len = 1));
}

STORED_TEST(stored_redis, nothing_of_a_job_expires_however_long_nobody_comes)
{
    static const char *const keys[] = { "j",  "a",       "t:",     "dead", "k",
                                        "kx", "writers", "topics", "meta", "fence" };
    struct lab lab = OPEN(.start_ns = 10);

    put_every_kind(&lab);
    cr_expect_gt(number_in(ASK("PTTL", "due:{queue}:owner")), 0);
    cr_expect_eq(number_in(ASK("DBSIZE")), 11, "a key that is not looked at");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char key[32];

        snprintf(key, sizeof key, "due:{queue}:%s", keys[i]);
        cr_expect_eq(number_in(ASK("PTTL", key)), -1, "%s", key); /* it is there, for ever */
    }
    lab_close(&lab);
    lab = OPEN(.start_ns = YEAR);
    cr_expect_eq(lab_stats(&lab).restored, 3u);
    cr_expect_eq(lab_stats(&lab).dead, 1u);
    cr_expect_str_eq(lab_dequeue(&lab), "back");
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* With a limit of its time it is put whole: then it must leave the dead by name. */
STORED_TEST(stored_redis, a_dead_job_of_an_earlier_life_that_comes_back_leaves_the_dead)
{
    struct lab lab = OPEN(.start_ns = 1);
    due_job job;
    due_id id = lab_enqueue(&lab, "tea", .at_ns = 1, .more = EXTRA(.ttl_ns = DUE_S(100)));

    cr_assert_eq(take_leased(lab.q, &job, DUE_S(1), 0), 0);
    cr_assert_eq(due_bury(&job, "why"), 0);
    lab_close(&lab);
    cr_expect_str_eq(ASK("ZCARD", "due:{queue}:dead"), ":1\r\n");
    lab = OPEN(.start_ns = 2);
    cr_expect_eq(due_kick(lab.q, id), 0);
    cr_expect_str_eq(ASK("ZCARD", "due:{queue}:dead"), ":0\r\n");
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
}

/* Whose a key is, is asked for a page at a time: only of those that have one. */
STORED_TEST(stored_redis, keys_come_back_whichever_job_of_a_page_has_one)
{
    for (unsigned keyed = 1; keyed < 8; keyed++) { /* a bit for each of the three */
        struct lab lab = OPEN(.start_ns = 1);
        char key[2] = "a";
        due_id ids[3];
        due_id id;

        for (unsigned i = 0; i < 3; i++, key[0]++)
            ids[i] = lab_enqueue(&lab, "job", .at_ns = 10 + i,
                                 .more = keyed >> i & 1 ? EXTRA(.key = key, .key_len = 1) : NULL);
        lab_close(&lab);
        lab = OPEN(.start_ns = 1);
        key[0] = 'a';
        for (unsigned i = 0; i < 3; i++, key[0]++) {
            int rc = due_id_of_key(lab.q, key, 1, &id);

            cr_expect_eq(rc, keyed >> i & 1 ? 0 : DUE_ENOENT, "keys %u, job %u", keyed, i);
            cr_expect(rc != 0 || due_id_equal(id, ids[i]), "keys %u, job %u", keyed, i);
        }
        cr_expect_eq(due_clear(lab.q, DUE_ALL_TOPICS, NULL), 0);
        lab_close(&lab);
    }
}

static void hear_missing(void *ctx, enum due_log_level level, const char *text)
{
    (void)level;
    if (strstr(text, "2 jobs stood in topics that were missing") != NULL)
        atomic_fetch_add((atomic_uint *)ctx, 1);
}

/* As by a server that evicts. */
STORED_TEST(stored_redis, jobs_come_back_though_the_list_of_topics_is_gone)
{
    struct lab lab = OPEN(.start_ns = 1);
    atomic_uint told = 0;

    lab_enqueue(&lab, "letter", .at_ns = 10, .topic = lab_topic(&lab, "mail"));
    lab_enqueue(&lab, "call", .at_ns = 20, .topic = lab_topic(&lab, "phone"));
    lab_close(&lab);
    cr_expect_str_eq(ASK("DEL", "due:{queue}:topics"), ":1\r\n");
    lab = OPEN(.start_ns = 1000, .with.on_log = hear_missing, .with.on_discard = forget,
               .with.ctx = &told);
    cr_expect_eq(lab_stats(&lab).restored, 2u);
    cr_expect_str_eq(lab_dequeue(&lab), "letter");
    cr_expect_str_eq(lab_dequeue(&lab), "call");
    cr_expect_eq(atomic_load(&told), 1u);
    cr_expect_eq(number_in(ASK("HLEN", "due:{queue}:topics")), 2);
    lab_close(&lab);
}

/* As half a batch may leave them: nobody's, but in the list of those that are kept. */
STORED_TEST(stored_redis, keys_of_which_only_half_is_kept_are_free_and_go)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = 10, .more = EXTRA(.key = "half", .key_len = 4) };
    struct lab lab = OPEN(.start_ns = 1);

    lab_enqueue(&lab, "tea", .at_ns = 10);
    lab_close(&lab);
    ASK("ZADD", "due:{queue}:kx", "4102444800000000", "half", "4102444800000000", "other");
    lab = OPEN(.start_ns = 1);
    cr_expect_eq(due_enqueue(lab.q, &spec, 0, NULL), 0);
    for (int i = 0; i < 50; i++) /* each batch frees some keys that are over */
        lab_enqueue(&lab, "jam", .at_ns = 20);
    cr_expect_str_eq(ASK("ZRANGE", "due:{queue}:kx", "0", "-1"), "*0\r\n");
    cr_expect_str_eq(ASK("HKEYS", "due:{queue}:k"), "*1\r\n$4\r\nhalf\r\n");
    lab_close(&lab);
}

static unsigned descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    cr_assert_not_null(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static uint64_t connects(due_store *store)
{
    struct due_store_stats stats;

    store->verbs->stats(store, &stats);
    return stats.connects;
}

STORED_TEST(stored_redis, a_thousand_reconnects_leak_no_descriptor)
{
    char path[128];
    char url[160];

    snprintf(path, sizeof path, "%s/proxy", server.dir);
    snprintf(url, sizeof url, "unix://%s", path);
    struct fault_proxy *proxy = fault_proxy_start(path, server.socket);
    cr_assert_not_null(proxy);
    unsigned at_first = descriptors();
    due_store *store = store_at(url, (due_redis_options){ .size = 0 });
    struct lab lab = OPEN(.with.store = store);
    unsigned before = descriptors();
    uint64_t first = connects(store);
    long jobs = 0;
    while (connects(store) < first + 1000) { /* what is cut may not have been used */
        cr_assert_lt(jobs, 5000, "it is not cut off");
        fault_proxy_cut(proxy);
        lab_enqueue(&lab, "tea", .at_ns = 1000);
        jobs++;
    }
    cr_expect_leq(descriptors(), before);
    cr_expect_eq(number_in(ASK("HLEN", "due:{queue}:j")), jobs);
    lab_close(&lab);
    for (int i = 0; i < 2000 && descriptors() > at_first; i++)
        crew_sleep(DUE_MS(5)); /* the proxy closes its ends in its own time */
    cr_expect_leq(descriptors(), at_first);
    fault_proxy_stop(proxy);
}

#else

typedef int there_is_no_redis; /* a file is not empty */

#endif
