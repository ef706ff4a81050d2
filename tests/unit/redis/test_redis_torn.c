/* A server's log that ends in the middle of a batch: the batch is there wholly or not at all, and
 * everything before it is. */
#include "lab/redis/redis_store_lab.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { LINES = 64, LINE = 160, STRIDE = 7, NEAR = 24 };

static void serve_durably(void)
{
    serve((const char *const[]){ "--appendonly", "yes", "--appendfsync", "always", NULL });
}

/* ---- What is stored ---- */

/* Of each job and each kept key a line, and a last one of how much the server holds. */
struct state {
    char line[LINES][LINE];
    size_t n;
};

static bool has_line(const struct state *s, const char *line)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->line[i], line) == 0)
            return true;
    }
    return false;
}

/* One may be shown twice. */
static int note_job(void *ctx, const due_record *r)
{
    struct state *s = ctx;

    char line[LINE];

    cr_assert_lt(s->n, LINES);
    snprintf(line, LINE, "%02d: %lld %lld %u %u cause %d '%s' '%.*s' key '%.*s'",
             (int)sequence_of(r->id), (long long)r->deadline_ns, (long long)r->until_ns,
             (unsigned)r->attempts, (unsigned)r->failures, (int)r->cause, r->topic, (int)r->len,
             r->len > 0 ? (const char *)r->data : "", (int)r->key_len,
             r->key_len > 0 ? (const char *)r->key : "");
    if (!has_line(s, line))
        memcpy(s->line[s->n++], line, LINE);
    return 0;
}

static int note_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct state *s = ctx;

    if (until_ns == 0) /* it is over, and to be removed */
        return 0;
    cr_assert_lt(s->n, LINES);
    snprintf(s->line[s->n++], LINE, "kept %.*s for %d until %lld", (int)len, (const char *)key,
             (int)sequence_of(id), (long long)until_ns);
    return 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static long count(const char *command, const char *key)
{
    return strtol(ASK(command, key) + 1, NULL, 10);
}

static struct state state_of(due_store *store)
{
    struct state s = { .n = 0 };
    int rc;

    for (int call = 0;
         (rc = store->verbs->load(store, call == 0, 9, note_job, &s, soon(LONG_NS))) == 1; call++)
        ;
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    for (int call = 0;
         (rc = store->verbs->keys(store, call == 0, 9, note_key, &s, soon(LONG_NS))) == 1; call++)
        ;
    cr_assert_eq(rc, 0, "%s", due_error_name(rc));
    qsort(s.line, s.n, sizeof s.line[0], compare);
    cr_assert_lt(s.n, LINES);
    snprintf(s.line[s.n++], LINE, "%ld records %ld entries %ld keys %ld kept %ld dead %ld aside",
             count("HLEN", "due:{q}:j"), count("HLEN", "due:{q}:a"), count("HLEN", "due:{q}:k"),
             count("ZCARD", "due:{q}:kx"), count("ZCARD", "due:{q}:dead"),
             count("HLEN", "due:{q}:q"));
    return s;
}

static const char *line_of(const struct state *s, size_t i)
{
    return i < s->n ? s->line[i] : "(none)";
}

static void expect_same(const struct state *is, const struct state *wanted, long cut)
{
    for (size_t i = 0; i < is->n || i < wanted->n; i++)
        cr_assert_str_eq(line_of(is, i), line_of(wanted, i), "cut at %ld: %s instead of %s", cut,
                         line_of(is, i), line_of(wanted, i));
}

/* ---- Batches ---- */

static due_change keyed(uint64_t sequence, int64_t when, const char *topic, const char *key)
{
    due_change c = put(sequence, when);

    c.record.topic = topic;
    c.record.key = key;
    c.record.key_len = key != NULL ? strlen(key) : 0;
    c.record.data = key != NULL ? key : "bytes";
    c.record.len = strlen(c.record.data);
    return c;
}

static due_change bury(uint64_t sequence, int64_t was, int64_t died)
{
    due_change c = move(sequence, was, was);

    c.kind = DUE_CHANGE_BURY;
    c.record.attempts = 3;
    c.record.failures = 3;
    c.record.cause = DUE_CAUSE_BURIED;
    c.record.died_ns = died;
    c.record.reason = "why";
    return c;
}

static due_change drop_keyed(uint64_t sequence, int64_t was, const char *key, int64_t kept_ns)
{
    due_change c = drop(sequence, was);

    c.record.key = key;
    c.record.key_len = strlen(key);
    c.key_kept_ns = kept_ns;
    return c;
}

static due_change of_key(enum due_change_kind kind, uint64_t sequence, const char *key, int64_t ns)
{
    return (due_change){
        .kind = kind,
        .key_kept_ns = ns,
        .record = { .id = id_of(0, sequence), .topic = "", .key = key, .key_len = strlen(key) }
    };
}

/* Jobs of every sort: 1 to 20 wait, 21 to 23 are dead; two keys are kept.  The next number. */
static uint64_t put_before(due_store *store)
{
    static const char *const keys[] = { "k1", "k2", "k3", "k4", "k5", "k6" };
    due_change changes[32];
    uint64_t number = 1;
    size_t n = 0;

    for (uint64_t i = 1; i <= 23; i++)
        changes[n++] = keyed(i, DUE_S(5), i % 4 == 0 ? "b" : "", i <= 6 ? keys[i - 1] : NULL);
    cr_assert_eq(commit(store, changes, n, number++), 0);
    n = 0;
    for (uint64_t i = 21; i <= 23; i++)
        changes[n++] = bury(i, DUE_S(5), DUE_S(6));
    for (size_t i = 0; i < n; i++)
        changes[i].record.topic = changes[i].record.id.byte[13] % 4 == 0 ? "b" : "";
    changes[n++] = move(13, DUE_S(5), DUE_S(7));
    changes[n++] = of_key(DUE_CHANGE_KEEP, 90, "old 1", DUE_S(50));
    changes[n++] = of_key(DUE_CHANGE_KEEP, 91, "old 2", DUE_S(50));
    cr_assert_eq(commit(store, changes, n, number++), 0);
    return number;
}

/* One change of every sort. */
static int put_last(due_store *store, uint64_t number)
{
    due_change changes[] = {
        keyed(30, DUE_S(9), "new", NULL),
        keyed(31, DUE_S(9), "", "k7"),
        keyed(32, DUE_S(9), "", "k1"), /* taken over from 1 */
        move(9, DUE_S(5), DUE_S(8)),
        move(21, DUE_S(6), DUE_S(8)), /* kicked */
        bury(10, DUE_S(5), DUE_S(7)),
        drop(11, DUE_S(5)),
        drop(22, DUE_S(6)),
        drop_keyed(2, DUE_S(5), "k2", 0),
        drop_keyed(3, DUE_S(5), "k3", DUE_S(60)),
        of_key(DUE_CHANGE_FORGET, 90, "old 1", 0),
        of_key(DUE_CHANGE_KEEP, 92, "old 3", DUE_S(70)),
    };

    changes[4].was_dead = changes[7].was_dead = 1;
    return commit(store, changes, sizeof changes / sizeof changes[0], number);
}

/* ---- The log ---- */

struct log {
    char path[160];
    char *bytes;
    long before; /* as long as it is without the last batch, */
    long after;  /* and with it */
};

static long size_of(const struct log *log)
{
    struct stat st;

    cr_assert_eq(stat(log->path, &st), 0);
    return (long)st.st_size;
}

static void read_log(struct log *log)
{
    FILE *file = fopen(log->path, "r");

    cr_assert_not_null(file);
    log->after = size_of(log);
    log->bytes = malloc((size_t)log->after);
    cr_assert_eq(fread(log->bytes, 1, (size_t)log->after, file), (size_t)log->after);
    fclose(file);
}

/* The server was killed, and its log ends at @cut; it starts again. */
static void tear(const struct log *log, long cut)
{
    FILE *file = fopen(log->path, "w");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(log->bytes, 1, (size_t)cut, file), (size_t)cut);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(redis_server_run(&server), 0);
}

/* A store that stays open while its server is killed. */
static struct log written(struct state *before, struct state *after)
{
    due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(3600) });
    uint64_t number = put_before(store);
    struct log log;

    snprintf(log.path, sizeof log.path, "%s/appendonlydir/appendonly.aof.1.incr.aof", server.dir);
    *before = state_of(store);
    log.before = size_of(&log);
    cr_assert_eq(put_last(store, number), 0);
    read_log(&log);
    *after = state_of(store);
    redis_server_kill(&server);
    due_redis_free(store);
    return log;
}

/* Where to cut: everywhere near the ends, and now and then between. */
static long next_cut(const struct log *log, long cut)
{
    bool near = cut < log->before + NEAR || cut >= log->after - NEAR;

    return near || cut + STRIDE > log->after - NEAR ? cut + 1 : cut + STRIDE;
}

#define TORN_TEST(suite, promise) \
    Test(suite, promise, .init = serve_durably, .fini = stop, .timeout = 100)

TORN_TEST(redis_torn, a_batch_at_the_end_of_a_log_is_there_wholly_or_not_at_all)
{
    struct state before;
    struct state after;
    struct log log = written(&before, &after);
    unsigned cuts = 0;

    cr_expect_gt(log.after - log.before, 500);
    cr_expect_neq(strcmp(before.line[before.n - 1], after.line[after.n - 1]), 0);
    for (long cut = log.before; cut <= log.after; cut = next_cut(&log, cut), cuts++) {
        tear(&log, cut);
        ASK("DEL", "due:{q}:owner");
        due_store *store = opened((due_redis_options){ 0 });
        struct state is = state_of(store);

        expect_same(&is, cut < log.after ? &before : &after, cut);
        finish(store);
        redis_server_kill(&server);
    }
    cr_expect_gt(cuts, 100u);
    free(log.bytes);
}

/* ---- Half a batch ---------------------------------------------------------------------------- */

/* The same job, or kept key. */
static bool has_subject(const struct state *s, const char *line)
{
    size_t len = strcspn(line, ":") + 1;

    if (strncmp(line, "kept ", 5) == 0)
        len = strcspn(line, "0123456789") + 1;
    for (size_t i = 0; i < s->n; i++) {
        if (strncmp(s->line[i], line, len) == 0)
            return true;
    }
    return false;
}

/* The same, if it may have lost its key. */
static bool has_but_key(const struct state *s, const char *line)
{
    const char *key = strstr(line, " key ''");

    for (size_t i = 0; key != NULL && i < s->n; i++) {
        if (strncmp(s->line[i], line, (size_t)(key - line) + 5) == 0)
            return true;
    }
    return has_line(s, line);
}

/* Each job is as it was or as it is to be, but perhaps for its key, and what was to stay is
 * there. */
static void expect_between(const struct state *is, const struct state *before,
                           const struct state *after, long cut)
{
    for (size_t i = 0; i + 1 < is->n; i++)
        cr_assert(has_but_key(before, is->line[i]) || has_but_key(after, is->line[i]),
                  "cut at %ld: %s", cut, is->line[i]);
    for (size_t i = 0; i + 1 < before->n; i++) {
        if (has_subject(after, before->line[i]))
            cr_assert(has_subject(is, before->line[i]), "cut at %ld: lost %s", cut,
                      before->line[i]);
    }
}

/* What is left of the batch in the log is done together with the next one, which is the takeover,
 * when the server starts once more. */
TORN_TEST(redis_torn, half_a_batch_leaves_no_job_that_is_half)
{
    struct state before;
    struct state after;
    struct log log = written(&before, &after);

    for (long cut = log.before; cut < log.after; cut += 2 * STRIDE) {
        tear(&log, cut);
        ASK("DEL", "due:{q}:owner");
        finish(opened((due_redis_options){ 0 }));
        redis_server_kill(&server);
        cr_assert_eq(redis_server_run(&server), 0);
        due_store *store = opened((due_redis_options){ 0 });
        struct state is = state_of(store);

        expect_between(&is, &before, &after, cut);
        finish(store);
        redis_server_kill(&server);
    }
    free(log.bytes);
}

/* ---- What goes before all is written again --------------------------------------------------- */

/* How many entries are no job's, and how many keys are neither a job's nor kept. */
#define LEFT_OVER                                                                            \
    "local left, base = { 0, 0 }, KEYS[1] "                                                  \
    "local function has(key, id) return redis.call('HEXISTS', base .. key, id) == 1 end "    \
    "for _, id in ipairs(redis.call('HKEYS', base .. 'a')) do "                              \
    "if id ~= 'table' and not has('j', id) then left[1] = left[1] + 1 end end "              \
    "for _, key in ipairs(redis.call('HKEYS', base .. 'k')) do "                             \
    "if not redis.call('ZSCORE', base .. 'kx', key) and "                                    \
    "not has('j', redis.call('HGET', base .. 'k', key)) then left[2] = left[2] + 1 end end " \
    "return table.concat(left, ' ')"

/* Everything that was there before the torn batch, by an owner that has just taken over.  One by
 * one: a removal of several is logged if one of them is there. */
static void drop_all(due_store *store)
{
    static const char *const keys[] = { "k1", "k2", "k3", "k4", "k5", "k6" };
    due_change changes[32];
    size_t n = 0;

    for (uint64_t i = 1; i <= 23; i++) {
        int64_t was = i == 13 ? DUE_S(7) : i > 20 ? DUE_S(6) : DUE_S(5);

        changes[n] = i <= 6 ? drop_keyed(i, was, keys[i - 1], 0) : drop(i, was);
        changes[n].was_dead = i > 20;
        changes[n++].record.topic = i % 4 == 0 ? "b" : "";
    }
    changes[n++] = of_key(DUE_CHANGE_FORGET, 90, "old 1", 0);
    changes[n++] = of_key(DUE_CHANGE_FORGET, 91, "old 2", 0);
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(commit_one(store, changes[i], i + 1), 0);
}

/* A key that stands in `kx` alone is shown as over. */
static int check_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    const char *words[] = { "HGET", "due:{q}:k", NULL, NULL };
    char name[16];

    (void)ctx;
    (void)id;
    snprintf(name, sizeof name, "%.*s", (int)len, (const char *)key);
    words[2] = name;
    cr_expect_eq(strcmp(ask(words), "$-1\r\n") == 0, until_ns == 0, "%s", name);
    return 0;
}

/* How many jobs there are. */
static unsigned count_jobs(due_store *store)
{
    struct seen seen = { .times = calloc(LINES, sizeof *seen.times) };
    unsigned n = 0;

    cr_expect_eq(load_all(store, 0, &seen), 0); /* one may be shown twice */
    for (size_t i = 0; i < LINES; i++)
        n += seen.times[i] > 0;
    free(seen.times);
    free(seen.data);
    cr_expect_eq(store->verbs->keys(store, 1, 0, check_key, NULL, soon(LONG_NS)), 0);
    return n;
}

/* In the middle of the next command: then the server leaves those before it in the log. */
static long next_command(const struct log *log, long at)
{
    while (at < log->after &&
           (log->bytes[at] != '*' || memcmp(log->bytes + at - 2, "\r\n", 2) != 0))
        at++;
    return at + 6;
}

/* The server logs no removal of what it does not have; but after its next start it may have it. */
TORN_TEST(redis_torn, what_goes_before_all_is_written_again_leaves_nothing)
{
    struct state before;
    struct state after;
    struct log log = written(&before, &after);
    uint64_t writer = info.writer;
    unsigned cuts = 0;

    for (long cut = next_command(&log, log.before + 1); cut < log.after;
         cut = next_command(&log, cut), cuts++) {
        tear(&log, cut);
        ASK("DEL", "due:{q}:owner");
        due_store *store = opened((due_redis_options){ .lease_ns = DUE_S(3600) });
        info.writer = writer; /* whose jobs they are */
        drop_all(store);
        redis_server_kill(&server);
        due_redis_free(store);
        cr_assert_eq(redis_server_run(&server), 0);
        const char *left = ASK("EVAL", LEFT_OVER, "1", "due:{q}:");
        cr_expect_not_null(strstr(left, "0 0"), "cut at %ld: %s", cut, left);
        ASK("DEL", "due:{q}:owner");
        store = opened((due_redis_options){ 0 });
        cr_expect_leq(count_jobs(store), 3u, "cut at %ld: more than the batch had put", cut);
        finish(store);
        redis_server_kill(&server);
    }
    cr_expect_gt(cuts, 12u);
    free(log.bytes);
}

/* Between two loads the queue has put everything again: what is there now was put by it. */
REDIS_TEST(redis_torn, is_over_once_everything_was_put_again_and_read)
{
    due_store *store = opened((due_redis_options){ 0 });
    struct seen seen = { 0 };

    cr_assert_eq(commit_one(store, put(1, 1), 1), 0);
    inside(store)->unsure = true;
    ASK("HSET", "due:{q}:meta", "server", "?");
    cr_expect_eq(load_all(store, 9, &seen), 0);
    cr_expect(inside(store)->unsure, "nothing was put again yet");
    cr_expect_str_eq(ASK("HGET", "due:{q}:meta", "server"), "$1\r\n?\r\n");
    cr_expect_eq(load_all(store, 9, &seen), 0);
    cr_expect_not(inside(store)->unsure);
    cr_expect_not_null(strstr(ASK("HGET", "due:{q}:meta", "server"), inside(store)->server));
    cr_expect(inside(store)->armed, "the guard behind it was heard");
    cr_expect_eq(commit_one(store, put(2, 1), 2), 0);
    cr_expect_eq(stats_of(store).connects, 1u);
    free(seen.data);
    finish(store);
}
