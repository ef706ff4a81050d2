/* A queue whose store cannot be read to its end: it serves what there is, says why once, and tells
 * whoever waits for the rest. */
#include "lab/redis/redis_poke.h"
#include "base/time.h"
#include "lab/redis/stored_redis_lab.h"

#define JOBS_KEY "due:{queue}:j"

static struct {
    pthread_mutex_t lock;
    char errors[4096];
    unsigned infos; /* lines that say that all was read after all */
} heard = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void listen_to(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    pthread_mutex_lock(&heard.lock);
    size_t len = strlen(heard.errors);

    if (level == DUE_LOG_ERROR)
        snprintf(heard.errors + len, sizeof heard.errors - len, "%s\n", text);
    heard.infos += strstr(text, "read after all") != NULL;
    pthread_mutex_unlock(&heard.lock);
}

static unsigned errors(const char *with)
{
    unsigned n = 0;

    pthread_mutex_lock(&heard.lock);
    for (const char *at = strstr(heard.errors, with); at != NULL; at = strstr(at + 1, with))
        n++;
    pthread_mutex_unlock(&heard.lock);
    return n;
}

/* Three jobs, due now, the second with a key; the program ends. */
static void store_three(due_id ids[3])
{
    struct lab lab = OPEN(.start_ns = 100);

    for (int i = 0; i < 3; i++) {
        due_spec spec = { DUE_SPEC_INIT, .at_ns = 10 + i, .data = &"012"[i], .len = 1,
                          .more = i == 1 ? EXTRA(.key = "k", .key_len = 1) : NULL };

        cr_assert_eq(due_enqueue(lab.q, &spec, 0, &ids[i]), 0);
    }
    lab_close(&lab);
}

static struct lab reopened(const char *url)
{
    struct lab_options o = { .start_ns = 100,
                             .with.size = sizeof(due_options),
                             .with.on_discard = forget,
                             .with.on_log = listen_to };

    o.with.store = store_at(url, (due_redis_options){ .size = 0 });
    o.with.store_timeout_ns = DUE_S(20);
    return lab_open_with(&o);
}

static void wait_for_errors(const char *with)
{
    while (errors(with) == 0)
        crew_sleep(DUE_MS(1));
}

static void wait_until_read(struct lab *lab)
{
    while (lab_stats(lab).loading)
        crew_sleep(DUE_MS(1));
}

STORED_TEST(stored_unreadable, a_job_of_a_newer_version_stays_and_the_others_are_handed_out)
{
    due_id ids[3];
    unsigned char bytes[1024];
    char text[DUE_ID_TEXT];

    store_three(ids);
    poke_newer(server.socket, JOBS_KEY, ids[0]);
    struct lab lab = reopened(server.url);
    wait_until_read(&lab);
    cr_expect_str_eq(lab_dequeue_all(&lab), "1 2");
    cr_expect_eq(errors("DUE_EVERSION"), 1u, "%s", heard.errors);
    cr_expect_eq(errors(due_id_format(ids[0], text)), 1u, "%s", heard.errors);
    lab_close(&lab);
    cr_expect_gt(poke_get(server.socket, JOBS_KEY, ids[0], bytes, sizeof bytes), 0u);
    cr_expect_str_eq(ASK("ZCARD", "due:{queue}:t:"), ":1\r\n");
    cr_expect_str_eq(ASK("HLEN", "due:{queue}:q"), ":0\r\n");
}

STORED_TEST(stored_unreadable, a_job_that_makes_no_sense_is_set_aside)
{
    due_id ids[3];

    store_three(ids);
    poke_nonsense(server.socket, JOBS_KEY, ids[2]);
    struct lab lab = reopened(server.url);
    wait_until_read(&lab);
    cr_expect_str_eq(lab_dequeue_all(&lab), "0 1");
    cr_expect_str_eq(ASK("HLEN", "due:{queue}:q"), ":1\r\n");
    lab_close(&lab);
}

/* Whoever waits for what cannot be read is told why, and does not wait for the store's timeout. */
static void expect_told(struct lab *lab, int why)
{
    due_spec spec = { DUE_SPEC_INIT, .data = "x", .len = 1,
                      .more = EXTRA(.key = "k", .key_len = 1) };
    int64_t began = due__mono_ns();
    due_job job;
    due_id id;

    cr_expect_eq(due_id_of_key(lab->q, "k", 1, &id), why);
    cr_expect_eq(due_enqueue(lab->q, &spec, 0, &id), why);
    cr_expect_lt(due__mono_ns() - began, DUE_S(10));
    cr_expect_eq(due_dequeue(lab->q, &job, 0), DUE_EAGAIN);
}

STORED_TEST(stored_unreadable, the_live_are_handed_out_if_the_dead_cannot_be_read)
{
    due_id ids[3];

    store_three(ids);
    ASK("SET", "due:{queue}:dead", "something else");
    struct lab lab = reopened(server.url);
    wait_for_errors("DUE_ECORRUPT");
    cr_expect_str_eq(lab_dequeue_all(&lab), "0 1 2");
    cr_expect_eq(lab_stats(&lab).loading, 1);
    expect_told(&lab, DUE_ECORRUPT);
    crew_sleep(DUE_MS(500)); /* it is tried again, and not said again */
    cr_expect_eq(errors("DUE_ECORRUPT"), 1u, "%s", heard.errors);
    ASK("DEL", "due:{queue}:dead");
    wait_until_read(&lab);
    while (heard.infos == 0)
        crew_sleep(DUE_MS(1));
    lab_close(&lab);
}

STORED_TEST(stored_unreadable, the_jobs_are_handed_out_if_the_kept_keys_cannot_be_read)
{
    due_id ids[3];

    store_three(ids);
    ASK("SET", "due:{queue}:kx", "something else");
    struct lab lab = reopened(server.url);
    wait_for_errors("DUE_ECORRUPT");
    cr_expect_str_eq(lab_dequeue_all(&lab), "0 1 2");
    expect_told(&lab, DUE_ECORRUPT);
    ASK("DEL", "due:{queue}:kx");
    wait_until_read(&lab);
    cr_expect_eq(errors("DUE_ECORRUPT"), 1u, "%s", heard.errors);
    lab_close(&lab);
}

STORED_TEST(stored_unreadable, a_user_who_must_not_scan_is_told_so)
{
    due_id ids[3];
    char url[256];

    store_three(ids);
    ASK("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "-zscan");
    snprintf(url, sizeof url, "unix://u:p@%s", server.socket);
    struct lab lab = reopened(url);
    wait_for_errors("DUE_EACCES");
    cr_expect_str_eq(lab_dequeue_all(&lab), "0 1 2");
    expect_told(&lab, DUE_EACCES);
    ASK("ACL", "SETUSER", "u", "+zscan");
    wait_until_read(&lab);
    cr_expect_eq(errors("DUE_EACCES"), 1u, "%s", heard.errors);
    lab_close(&lab);
}

/* A call that waits for a job until its time is up: on the real clock. */
STORED_TEST(stored_unreadable, a_take_whose_time_is_up_says_why_nothing_came)
{
    struct lab_options o = { .kernel = true,
                             .with.size = sizeof(due_options),
                             .with.on_discard = forget,
                             .with.on_log = listen_to };
    due_job job;

    ASK("SET", "due:{queue}:dead", "something else");
    o.with.store = store_at(server.url, (due_redis_options){ .size = 0 });
    struct lab lab = lab_open_with(&o);
    wait_for_errors("DUE_ECORRUPT");
    cr_expect_eq(due_dequeue(lab.q, &job, DUE_MS(20)), DUE_ECORRUPT);
    cr_expect_eq(due_dequeue(lab.q, &job, 0), DUE_EAGAIN);
    lab_close(&lab);
}
