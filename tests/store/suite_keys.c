/* suite_keys.c - unique keys: kept after their job is gone, and forgotten. */
#include "store/suite_frame.h"

#define KEYS_MOST 3000

/* What a key should be shown as. */
struct known {
    unsigned char bytes[DUE_KEY_MAX];
    size_t len;
    due_id id;
    int64_t until_ns; /* 0: it is not kept */
    bool gone_once;   /* was not kept all the time since the showing began */
    unsigned seen;
};

struct keys {
    struct suite *t;
    struct known *known;
    size_t n;
    size_t shown;
    int refuse; /* what the visit answers instead of 0, once it was shown so many */
    size_t after;
};

static bool opened(struct suite *t)
{
    return suite_answers(t, suite_open(t, 0), 0, __FILE__, __LINE__, "open");
}

static bool committed(struct suite *t)
{
    return suite_answers(t, suite_commit(t, 0), 0, __FILE__, __LINE__, "commit");
}

static struct keys begun(struct suite *t)
{
    struct keys k = { .t = t, .known = calloc(KEYS_MOST, sizeof(struct known)) };

    suite_check(t, k.known != NULL, __FILE__, __LINE__, "no memory");
    return k;
}

static bool is_key(const struct known *known, const void *key, size_t len)
{
    return known->len == len && memcmp(known->bytes, key, len) == 0;
}

static bool is_time(const struct suite *t, int64_t shown, int64_t ns)
{
    int64_t grain = t->maker->grain_ns > 1 ? t->maker->grain_ns : 1;

    return shown >= ns && shown - ns < 2 * grain;
}

static int visit(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct keys *k = ctx;
    struct known *found = NULL;

    if (k->refuse != 0 && k->shown >= k->after)
        return k->refuse;
    k->shown++;
    for (size_t i = 0; i < k->n && found == NULL; i++)
        found = is_key(&k->known[i], key, len) ? &k->known[i] : NULL;
    if (!suite_check(k->t, found != NULL && found->until_ns != 0, __FILE__, __LINE__,
                     "a key is shown that is not kept"))
        return 0;
    suite_check(k->t, due_id_equal(found->id, id), __FILE__, __LINE__, "the id differs");
    suite_check(k->t, is_time(k->t, until_ns, found->until_ns), __FILE__, __LINE__,
                "the time differs");
    found->seen++;
    return 0;
}

static int page(struct keys *k, bool rewind, size_t max)
{
    due_store *s = k->t->stores[0];
    int64_t end_ns = suite_soon();
    int rc;

    for (size_t i = 0; rewind && i < k->n; i++) {
        k->known[i].seen = 0;
        k->known[i].gone_once = k->known[i].until_ns == 0;
    }
    k->shown = rewind ? 0 : k->shown;
    do {
        rc = s->verbs->keys(suite_called(k->t, 0), rewind, max, visit, k, end_ns);
        rewind = false; /* it has begun, also if the answer is DUE_EAGAIN */
    } while (rc == DUE_EAGAIN && k->refuse == 0 && suite_now_ns() < end_ns);
    return rc;
}

static bool all_seen(struct keys *k)
{
    for (size_t i = 0; i < k->n; i++)
        if (!suite_check(k->t, k->known[i].gone_once || k->known[i].seen > 0, __FILE__, __LINE__,
                         "key %zu was kept all the time, and not shown", i))
            return false;
    return !k->t->failed;
}

/* Exactly what is kept is shown. */
static bool same(struct keys *k, size_t max)
{
    size_t calls = 0;
    int rc = page(k, true, max);

    while (rc == 1 && calls++ < 2 * k->n + 100)
        rc = page(k, false, max);
    return suite_answers(k->t, rc, 0, __FILE__, __LINE__, "keys") && all_seen(k);
}

/* A job with a key of its own; answers the number of both. */
static size_t job_with_key(struct keys *k, const void *key, size_t len)
{
    size_t job = suite_job(k->t, "", DUE_S(5), "x", 1);
    struct known *known = &k->known[k->n++];

    memcpy(known->bytes, key, len);
    known->len = len;
    known->id = k->t->jobs[job].record.id;
    known->gone_once = true;
    k->t->jobs[job].record.key = known->bytes;
    k->t->jobs[job].record.key_len = len;
    return job;
}

static size_t numbered(struct keys *k, unsigned number)
{
    char key[24];

    return job_with_key(k, key, (size_t)snprintf(key, sizeof key, "key %u", number));
}

static void keep_or_forget(struct keys *k, enum due_change_kind kind, size_t key, int64_t until_ns)
{
    struct known *known = &k->known[key];
    due_record record = { .id = known->id, .key = known->bytes, .key_len = known->len };

    suite_change(k->t, kind, SIZE_MAX, &record);
    k->t->changes[k->t->n_changes - 1].key_kept_ns = until_ns;
    known->until_ns = until_ns;
    known->gone_once = true;
}

static void drop_keeping(struct keys *k, size_t job, int64_t until_ns)
{
    suite_drop_keeping(k->t, job, until_ns);
    k->known[job].until_ns = until_ns;
    k->known[job].gone_once = true;
}

/* ---- The tests ------------------------------------------------------------------------------- */

static void are_kept_and_forgotten(struct suite *t)
{
    struct keys k = begun(t);

    if (opened(t)) {
        for (unsigned i = 0; i < 6; i++)
            suite_put(t, numbered(&k, i));
        suite_check(t, committed(t) && same(&k, 10), __FILE__, __LINE__, "live ones are shown");
        for (size_t i = 0; i < 4; i++)
            drop_keeping(&k, i, DUE_S(100) + (int64_t)i);
        suite_drop(t, 4);
        suite_check(t, committed(t) && same(&k, 10), __FILE__, __LINE__, "after the drops");
        keep_or_forget(&k, DUE_CHANGE_FORGET, 1, 0);
        keep_or_forget(&k, DUE_CHANGE_KEEP, 2, DUE_S(300));
        suite_check(t, committed(t) && same(&k, 10), __FILE__, __LINE__, "after a forget");
        suite_close(t, 0);
        suite_check(t, opened(t) && same(&k, 10) && suite_same(t, 0), __FILE__, __LINE__,
                    "after opening again");
    }
    free(k.known);
}

static void are_any_bytes(struct suite *t)
{
    unsigned char bytes[256];
    struct keys k = begun(t);

    if (opened(t)) {
        for (int c = 0; c < 256; c++) {
            bytes[0] = (unsigned char)c;
            suite_put(t, job_with_key(&k, bytes, 1));
        }
        for (int c = 0; c < 256; c++)
            bytes[c] = (unsigned char)(c ^ 7);
        suite_check(t, committed(t), __FILE__, __LINE__, "one byte each");
        suite_put(t, job_with_key(&k, bytes, DUE_KEY_MAX));
        bytes[DUE_KEY_MAX - 1] ^= 1;
        suite_put(t, job_with_key(&k, bytes, DUE_KEY_MAX));
        memset(bytes, 0, sizeof bytes);
        for (size_t len = 2; len <= DUE_KEY_MAX; len += 253)
            suite_put(t, job_with_key(&k, bytes, len));
        suite_put(t, job_with_key(&k, "*1\r\n$8\r\nFLUSHALL\r\n", 19));
        suite_check(t, committed(t) && same(&k, 100), __FILE__, __LINE__, "live");
        for (size_t i = 0; i < k.n; i++) {
            if (t->n_changes == t->info[0].batch_changes)
                suite_check(t, committed(t), __FILE__, __LINE__, "kept");
            drop_keeping(&k, i, DUE_FOREVER - (int64_t)i * DUE_S(10));
        }
        suite_check(t, committed(t) && same(&k, 100), __FILE__, __LINE__, "kept");
        suite_close(t, 0);
        suite_check(t, opened(t) && same(&k, 1), __FILE__, __LINE__, "opened again");
    }
    free(k.known);
}

/* What is free may be taken in the same batch, behind that. */
static void change_hands_in_one_batch(struct suite *t)
{
    struct keys k = begun(t);

    if (opened(t)) {
        suite_put(t, numbered(&k, 0));
        suite_put(t, numbered(&k, 1));
        suite_check(t, committed(t), __FILE__, __LINE__, "put");
        drop_keeping(&k, 0, DUE_S(100));
        suite_check(t, committed(t) && same(&k, 10), __FILE__, __LINE__, "one is kept");
        keep_or_forget(&k, DUE_CHANGE_FORGET, 0, 0);
        suite_drop(t, 1);
        suite_put(t, numbered(&k, 0));
        suite_put(t, numbered(&k, 1));
        suite_check(t, committed(t), __FILE__, __LINE__, "handed on");
        suite_check(t, same(&k, 10) && suite_same(t, 0), __FILE__, __LINE__, "both live");
        k.known[0] = k.known[2]; /* of the same names: shown is the one that is kept */
        k.known[1] = k.known[3];
        k.n = 2;
        drop_keeping(&k, 2, 0);
        suite_drop_keeping(t, 3, DUE_S(7));
        k.known[1].until_ns = DUE_S(7);
        suite_check(t, committed(t) && same(&k, 10), __FILE__, __LINE__, "of the new one");
    }
    free(k.known);
}

static void are_shown_in_pages_while_they_change(struct suite *t)
{
    struct keys k = begun(t);
    unsigned rounds = 0;

    if (opened(t)) {
        for (unsigned i = 0; i < 1500; i++) {
            if (t->n_changes == t->info[0].batch_changes)
                suite_check(t, committed(t), __FILE__, __LINE__, "kept");
            size_t key = k.n++;
            k.known[key].len = (size_t)snprintf((char *)k.known[key].bytes, 24, "key %u", i);
            k.known[key].id = suite_id(0, t->info[0].writer, 100000 + i);
            keep_or_forget(&k, DUE_CHANGE_KEEP, key, DUE_S(1 + (int)(i % 9)));
        }
        suite_check(t, committed(t) && same(&k, 100), __FILE__, __LINE__, "kept");
        int rc = page(&k, true, 50);
        while (rc == 1 && rounds++ < 3000) {
            size_t key = (size_t)suite_below(t, k.n);

            keep_or_forget(&k, k.known[key].until_ns != 0 ? DUE_CHANGE_FORGET : DUE_CHANGE_KEEP,
                           key, k.known[key].until_ns != 0 ? 0 : DUE_S(5));
            if (!committed(t))
                break;
            rc = page(&k, false, 50);
        }
        suite_check(t, rc == 0 && all_seen(&k) && same(&k, 1000), __FILE__, __LINE__, "changed");
    }
    free(k.known);
}

/* It is to be shown so from now on. */
static void without_key(due_record *r)
{
    r->key = NULL;
    r->key_len = 0;
    r->keep_key_ns = 0;
}

static bool shown_so(struct suite *t, size_t job)
{
    return suite_same(t, 0) && suite_answers(t, suite_find(t, 0, t->jobs[job].record.id), 0,
                                             __FILE__, __LINE__, "find");
}

/* A PUT takes the key of a job that is stored still: that one has none, whatever becomes of the
 * other. */
static void are_not_of_whom_they_were_taken_from(struct suite *t)
{
    struct keys k = begun(t);

    if (opened(t)) {
        for (unsigned i = 0; i < 3; i++) {
            size_t job = numbered(&k, i);
            t->jobs[job].record.keep_key_ns = DUE_S(9);
            suite_put(t, job);
        }
        suite_check(t, committed(t) && shown_so(t, 1), __FILE__, __LINE__, "each has its own");
        for (unsigned i = 0; i < 2; i++) {
            suite_put(t, numbered(&k, i));
            without_key(&t->jobs[i].record);
        }
        suite_check(t, committed(t) && shown_so(t, 0) && shown_so(t, 3), __FILE__, __LINE__,
                    "two were taken over");
        suite_move(t, 0, DUE_S(50));
        suite_bury(t, 1, DUE_CAUSE_BURIED, DUE_S(6), "why");
        suite_check(t, committed(t) && shown_so(t, 0), __FILE__, __LINE__, "moved and buried");
        k.known[0] = k.known[3]; /* of the same names: shown is the one that is kept */
        k.known[1] = k.known[4];
        k.n = 2;
        suite_drop(t, 3);
        suite_drop_keeping(t, 4, DUE_S(100));
        k.known[1].until_ns = DUE_S(100);
        suite_check(t, committed(t) && shown_so(t, 0) && same(&k, 10), __FILE__, __LINE__,
                    "free, and kept");
        keep_or_forget(&k, DUE_CHANGE_FORGET, 1, 0);
        suite_check(t, committed(t) && shown_so(t, 1) && same(&k, 10), __FILE__, __LINE__, "free");
        suite_close(t, 0);
        suite_check(t, opened(t) && shown_so(t, 0) && shown_so(t, 1) && shown_so(t, 2), __FILE__,
                    __LINE__, "opened again");
    }
    free(k.known);
}

static void end_with_what_the_visit_answers(struct suite *t)
{
    struct keys k = begun(t);

    if (opened(t)) {
        for (unsigned i = 0; i < 5; i++)
            suite_put(t, numbered(&k, i));
        suite_check(t, committed(t), __FILE__, __LINE__, "put");
        for (size_t i = 0; i < 5; i++)
            drop_keeping(&k, i, DUE_S(100));
        suite_check(t, committed(t), __FILE__, __LINE__, "kept");
        k.refuse = DUE_ENOMEM;
        k.after = 2;
        suite_check(t, page(&k, true, 10) == DUE_ENOMEM && k.shown == 2, __FILE__, __LINE__,
                    "refused");
        k.refuse = 0;
        suite_check(t, page(&k, false, 10) == 0 && all_seen(&k), __FILE__, __LINE__, "gone on");
        suite_check(t, same(&k, 1), __FILE__, __LINE__, "begun again");
    }
    free(k.known);
}

static void can_be_kept_and_freed_when_full(struct suite *t)
{
    if (!suite_has(t, t->maker->full != NULL, "no hook full"))
        return;
    struct keys k = begun(t);

    if (opened(t)) {
        for (unsigned i = 0; i < 4; i++)
            suite_put(t, numbered(&k, i));
        suite_check(t, committed(t), __FILE__, __LINE__, "put");
        drop_keeping(&k, 0, DUE_S(100));
        suite_check(t, committed(t), __FILE__, __LINE__, "kept");
        t->maker->full(t->maker->ctx, true);
        keep_or_forget(&k, DUE_CHANGE_FORGET, 0, 0);
        suite_check(t, committed(t) && same(&k, 10), __FILE__, __LINE__, "freed alone");
        drop_keeping(&k, 1, DUE_S(50));
        suite_drop(t, 2);
        suite_check(t, committed(t) && same(&k, 10) && suite_same(t, 0), __FILE__, __LINE__,
                    "dropped, one of them keeping its key");
        t->maker->full(t->maker->ctx, false);
    }
    free(k.known);
}

static void are_lost_with_everything_and_kept_again(struct suite *t)
{
    if (!suite_has(t, t->maker->lose != NULL, "no hook lose"))
        return;
    struct keys k = begun(t);
    int rc = 0;

    if (opened(t)) {
        suite_put(t, numbered(&k, 0));
        suite_check(t, committed(t), __FILE__, __LINE__, "put");
        drop_keeping(&k, 0, DUE_S(100));
        suite_check(t, committed(t) && same(&k, 10), __FILE__, __LINE__, "kept");
        t->maker->lose(t->maker->ctx);
        for (int i = 0; i < 100 && rc != DUE_ELOST; i++)
            rc = page(&k, true, 10);
        suite_check(t, rc == DUE_ELOST, __FILE__, __LINE__, "%s", due_error_name(rc));
        k.known[0].until_ns = 0;
        suite_check(t, same(&k, 10), __FILE__, __LINE__, "nothing is left");
        keep_or_forget(&k, DUE_CHANGE_KEEP, 0, DUE_S(100));
        suite_check(t, committed(t) && same(&k, 10), __FILE__, __LINE__, "kept again");
    }
    free(k.known);
}

const struct suite_test suite_key_tests[] = {
    { "keys are kept and forgotten", are_kept_and_forgotten },
    { "keys are any bytes", are_any_bytes },
    { "keys change hands in one batch", change_hands_in_one_batch },
    { "keys are not of whom they were taken from", are_not_of_whom_they_were_taken_from },
    { "keys are shown in pages while they change", are_shown_in_pages_while_they_change },
    { "keys end with what the visit answers", end_with_what_the_visit_answers },
    { "keys can be kept and freed when full", can_be_kept_and_freed_when_full },
    { "keys are lost with everything, and kept again", are_lost_with_everything_and_kept_again },
    { NULL, NULL },
};
