/* redis_trial.c - what each cell of a matrix of faults is made of. */
#include "lab/redis/redis_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t thread_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void trial_complain(struct trial *t, const char *what, int rc)
{
    if (t->wrong == NULL) {
        t->wrong = what;
        t->rc = rc;
    }
}

bool trial_end(struct trial *t, const char *what)
{
    t->cpu_ns = thread_cpu_ns() - t->cpu_ns;
    if (t->cpu_ns > TRIAL_CPU)
        trial_complain(t, "processor time", (int)(t->cpu_ns / 1000000));
    if (t->store != NULL)
        t->store->verbs->free(t->store);
    t->store = NULL;
    if (t->wrong != NULL)
        printf("  WRONG: %s: %s (%d %s)\n", what, t->wrong, t->rc, due_error_name(t->rc));
    return t->wrong == NULL;
}

/* ---- Asking the server ---- */

static bool ask(const struct redis_server *server, const char *const *words, char *answer,
                size_t room)
{
    long n = redis_server_ask(server, words, answer, room);

    CREW_CHECK(n > 0, ": the server does not answer");
    return answer[0] != '-';
}

void trial_ask(const struct trial *t, const char *const *words)
{
    char answer[256];

    CREW_CHECK(ask(&t->place->server, words, answer, sizeof answer), ": %s", answer);
}

bool trial_has_landed(const struct trial *t, const struct redis_server *server, uint64_t number)
{
    char key[64];
    char writer[24];
    char answer[64] = "";

    snprintf(key, sizeof key, "due:{%s}:writers", t->name);
    snprintf(writer, sizeof writer, "%llu", (unsigned long long)t->info.writer);
    (void)ask(server, (const char *const[]){ "HGET", key, writer, NULL }, answer, sizeof answer);
    char *digits = strchr(answer, '\n');
    return answer[0] == '$' && digits != NULL && strtoull(digits + 1, NULL, 10) >= number;
}

static void forget_owner(const struct trial *t)
{
    char key[64];

    snprintf(key, sizeof key, "due:{%s}:owner", t->name);
    TRIAL_ASK(t, "DEL", key);
}

static bool has_owner(const struct trial *t)
{
    char key[64];
    char answer[64];

    snprintf(key, sizeof key, "due:{%s}:owner", t->name);
    (void)ask(&t->place->server, (const char *const[]){ "EXISTS", key, NULL }, answer,
              sizeof answer);
    return answer[1] != '0';
}

void trial_begin(struct trial *t, struct place *place, const char *matrix, size_t number)
{
    t->place = place;
    snprintf(t->name, sizeof t->name, "%.16s-%zu", matrix, number);
    TRIAL_ASK(t, "FLUSHALL");
    t->cpu_ns = thread_cpu_ns();
}

/* ---- The calls ---- */

/* A call begins. */
static int64_t until(struct trial *t)
{
    t->began_ns = crew_now_ns();
    return t->began_ns + TRIAL_ONCE;
}

/* It has answered @rc.  True: it is to be made again. */
static bool again(struct trial *t, const char *call, int rc)
{
    if (crew_now_ns() > t->began_ns + TRIAL_ONCE + TRIAL_LATE)
        trial_complain(t, "a call that was not back in its time", rc);
    if (t->wrong != NULL)
        return false;
    if (rc == DUE_EAGAIN || rc == DUE_EINDOUBT)
        return true;
    if (rc >= 0)
        return false;
    t->told++;
    if (t->may == NULL || !t->may(t, call, rc))
        trial_complain(t, call, rc);
    return t->wrong == NULL;
}

/* One that answers DUE_ESTORE ran out of time.  One that answers an error can have become the owner
 * all the same: of which this process will hear for a lease that it is alive. */
bool trial_opens(struct trial *t)
{
    int rc = DUE_ESTORE;

    for (int times = 0; rc != 0 && times < 20; times++) {
        t->store = place_store(t->place);
        struct due_store_open how = { .name = t->name, .until_ns = until(t) };
        rc = t->store->verbs->open(t->store, &how, &t->info, NULL);
        if (rc == 0)
            break;
        t->store->verbs->free(t->store);
        t->store = NULL;
        if (!again(t, "open", rc == DUE_ESTORE || rc == DUE_EBUSY ? DUE_EAGAIN : rc))
            break;
        forget_owner(t);
    }
    if (rc != 0)
        trial_complain(t, "open", rc);
    return t->wrong == NULL;
}

void trial_commits(struct trial *t, const due_change *changes, size_t n, uint64_t number)
{
    const struct redis_server *server = &t->place->server;
    int rc;

    do {
        rc = t->store->verbs->ready(t->store, until(t));
        if (rc == 0)
            rc = t->store->verbs->commit(t->store, changes, n, number, t->began_ns + TRIAL_ONCE);
        if (rc < 0 && rc != DUE_EINDOUBT && rc != DUE_EAGAIN && trial_has_landed(t, server, number))
            trial_complain(t, "refused, and it has landed", rc);
    } while (again(t, "commit", rc));
    if (rc == 0 && !trial_has_landed(t, server, number))
        trial_complain(t, "confirmed, and it has not landed", rc);
    if (rc == 0 && t->replica != NULL && !trial_has_landed(t, t->replica, number))
        trial_complain(t, "confirmed, and the replica has not got it", rc);
}

void trial_is_full(struct trial *t, const due_change *changes, size_t n, uint64_t number)
{
    int rc;

    do {
        rc = t->store->verbs->ready(t->store, until(t));
        if (rc == 0)
            rc = t->store->verbs->commit(t->store, changes, n, number, t->began_ns + TRIAL_ONCE);
    } while (again(t, "commit", rc == DUE_ENOSPC ? 0 : rc));
    if (rc != DUE_ENOSPC || trial_has_landed(t, &t->place->server, number))
        trial_complain(t, "a full server took it", rc);
}

void trial_gives(struct trial *t, unsigned char k)
{
    due_change c[2];
    size_t n = batch(c, t->info.writer, k);

    trial_commits(t, c, n, k);
}

void trial_reads(struct trial *t)
{
    const struct due_store_verbs *v = t->store->verbs;
    int rc = 1;

    for (int first = 1; rc == 1; first = 0)
        do
            rc = v->load(t->store, first, 2, count, &t->seen, until(t));
        while (again(t, "load", rc));
    rc = rc < 0 ? rc : 1;
    for (int first = 1; rc == 1; first = 0)
        do
            rc = v->keys(t->store, first, 2, count_key, &t->seen, until(t));
        while (again(t, "keys", rc));
}

static uint64_t author_of(const struct trial *t)
{
    return t->author != 0 ? t->author : t->info.writer;
}

void trial_stays(struct trial *t)
{
    const struct due_store_verbs *v = t->store->verbs;
    struct seen seen = { .jobs = { 0 } };
    int64_t held;
    int rc;

    do
        rc = v->renew(t->store, &held, until(t));
    while (again(t, "renew", rc));
    if (t->wrong != NULL)
        return;
    do
        rc = v->find(t->store, id_of(author_of(t), 3), count, &seen, until(t));
    while (again(t, "find", rc));
    if (rc == 0 && (seen.jobs[3] != 1 || seen.dead[3] != 0))
        trial_complain(t, "find shows something else", rc);
}

/* Whatever it answers, the next owner comes to its own; but what it says is to be true. */
void trial_closes(struct trial *t)
{
    if (t->store == NULL)
        return;
    int rc = t->store->verbs->close(t->store, until(t));
    (void)again(t, "close", DUE_EAGAIN);
    if (rc == 0 && has_owner(t))
        trial_complain(t, "closed, and it is the owner still", rc);
    t->store->verbs->free(t->store);
    t->store = NULL;
}

void trial_takes_over(struct trial *t)
{
    bool there = trial_opens(t);

    if (there)
        trial_reads(t);
    if (there && t->wrong == NULL)
        trial_stays(t);
    trial_closes(t);
}

void trial_lives(struct trial *t)
{
    bool there = trial_opens(t);

    for (unsigned char k = 1; there && k <= BATCHES && t->wrong == NULL; k++)
        trial_gives(t, k);
    if (there && t->wrong == NULL)
        trial_reads(t);
    if (there && t->wrong == NULL)
        trial_stays(t);
    trial_closes(t);
}

void trial_verify(struct trial *t)
{
    struct trial next = { .place = t->place, .author = author_of(t) };

    snprintf(next.name, sizeof next.name, "%s", t->name);
    if (t->wrong != NULL)
        return;
    forget_owner(t);
    if (trial_opens(&next)) {
        CREW_CHECK(fault_proxy_settle(t->place->proxy, 20000), ": what came late");
        if (!has_owner(&next))
            trial_complain(&next, "what came late has taken the queue away", 0);
        trial_reads(&next);
    }
    if (next.wrong == NULL)
        trial_stays(&next);
    trial_closes(&next);
    if (next.wrong == NULL && !all_right(&next.seen)) {
        trial_complain(&next, "not everything has landed", 0);
        show_seen(&next.seen, 0);
    }
    if (next.wrong != NULL)
        trial_complain(t, next.wrong, next.rc);
}

/* ---- Many of them ---- */

static size_t every = 1;

struct worker {
    pthread_t thread;
    struct matrix *m;
    struct place *place;
    size_t cells;
    atomic_size_t *next; /* relaxed would do: each cell is whole by itself */
    size_t tried;
    size_t right;
};

static size_t next_cell(struct worker *w)
{
    size_t turn = atomic_fetch_add(w->next, 1);

    return turn * every + turn % every;
}

static void *work(void *arg)
{
    struct worker *w = arg;

    for (size_t cell = next_cell(w); cell < w->cells; cell = next_cell(w)) {
        w->tried++;
        w->right += w->m->run(w->place, cell, w->m->ctx);
    }
    return NULL;
}

void matrix_options(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--every") == 0)
        every = (size_t)strtoull(argv[2], NULL, 10);
    if ((argc != 1 && argc != 3) || every < 1)
        crew_fail(__FILE__, __LINE__, "usage: %s [--every N]", argv[0]);
}

void matrix_say(const char *what, size_t right, size_t tried)
{
    printf("%s: %zu of %zu cells", what, right, tried);
    if (every > 1)
        printf(", one of %zu", every);
    printf("\n");
}

void matrix_run(struct matrix *m, size_t cells, size_t *tried, size_t *right)
{
    struct worker workers[MATRIX_PLACES];
    atomic_size_t next = 0;

    for (size_t i = 0; i < MATRIX_PLACES; i++) {
        workers[i] =
            (struct worker){ .m = m, .place = &m->places[i], .cells = cells, .next = &next };
        CREW_CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "");
    }
    for (size_t i = 0; i < MATRIX_PLACES; i++) {
        pthread_join(workers[i].thread, NULL);
        *tried += workers[i].tried;
        *right += workers[i].right;
    }
}

bool matrix_open(struct matrix *m)
{
    for (size_t i = 0; i < MATRIX_PLACES; i++)
        if (!place_open(&m->places[i]))
            return false;
    return true;
}

void matrix_close(struct matrix *m)
{
    for (size_t i = 0; i < MATRIX_PLACES; i++)
        place_close(&m->places[i]);
}
