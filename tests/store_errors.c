/* store_errors.c - every error that a server may answer, at every command of the Redis store: of an
 * opening, of batches, of reading them back and of staying the owner.
 *
 * In each cell one command is refused once.  What the calls may answer is in the table below; a
 * batch that is answered with an error has not landed, and lands when it is given again; every call
 * is back in its time, and costs next to no processor time; in the end everything has landed once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef DUE_HAVE_REDIS

#include "redis_batches.h"

#define ONCE DUE_MS(400) /* a call has so long */
#define LATE DUE_S(2)    /* and is back so long after that, on a busy machine */
#define CPU  DUE_MS(100) /* of this thread, for a whole cell */

/* What a call may answer besides what it answers without.  0: nothing, it is seen through. */
static const struct error {
    const char *text;
    int answer;
} errors[] = {
    { "-OOM command not allowed when used memory > 'maxmemory'.", DUE_ENOSPC },
    { "-MISCONF Errors writing to the AOF file: No space left on device", 0 },
    { "-READONLY You can't write against a read only replica.", 0 },
    { "-LOADING Redis is loading the dataset in memory", 0 },
    { "-BUSY Redis is busy running a script.", 0 },
    { "-NOSCRIPT No matching script. Please use EVAL.", DUE_ECORRUPT },
    { "-NOAUTH Authentication required.", DUE_EACCES },
    { "-WRONGPASS invalid username-password pair or user is disabled.", DUE_EACCES },
    { "-NOPERM this user has no permissions to run the command", DUE_EACCES },
    { "-NOREPLICAS Not enough good replicas to write.", 0 },
    { "-CLUSTERDOWN The cluster is down", 0 },
    { "-MOVED 3999 127.0.0.1:6381", 0 },
    { "-ASK 3999 127.0.0.1:6381", 0 },
    { "-TRYAGAIN Multiple keys request during rehashing of slot", 0 },
    { "-EXECABORT Transaction discarded because of previous errors.", DUE_ECORRUPT },
    { "-WRONGTYPE Operation against a key holding the wrong kind of value", DUE_ECORRUPT },
    { "-ERR max number of clients reached", 0 },
    { "-ERR unknown command", DUE_ECORRUPT },
};

/* One cell. */
struct trial {
    struct place *place;
    const struct error *error; /* NULL: none */
    due_store *store;
    struct due_store_info info;
    char name[32];
    int64_t began_ns;
    unsigned refusals; /* calls that answered the error */
    const char *wrong; /* what was */
    int rc;
};

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void complain(struct trial *t, const char *what, int rc)
{
    if (t->wrong == NULL) {
        t->wrong = what;
        t->rc = rc;
    }
}

/* A call begins. */
static int64_t until(struct trial *t)
{
    t->began_ns = crew_now_ns();
    return t->began_ns + ONCE;
}

/* It has answered @rc.  True: it is to be made again. */
static bool again(struct trial *t, const char *call, int rc)
{
    if (crew_now_ns() > t->began_ns + ONCE + LATE)
        complain(t, "a call that was not back in its time", rc);
    if (t->wrong != NULL)
        return false;
    if (rc == DUE_EAGAIN || rc == DUE_EINDOUBT)
        return true;
    if (rc >= 0)
        return false;
    t->refusals++;
    if (t->error == NULL || rc != t->error->answer || t->refusals > 1)
        complain(t, call, rc);
    return t->wrong == NULL;
}

/* ---- The calls ---- */

/* An opening that was refused is made again.  Where MULTI alone is refused, what it should hold
 * together is done one by one, and one that was refused can have become the owner: for a lease. */
static bool opens(struct trial *t)
{
    int rc = DUE_EBUSY;

    for (int times = 0; rc != 0 && times < 8; times++) {
        t->store = place_store(t->place);
        struct due_store_open how = { .name = t->name, .until_ns = until(t) };
        rc = t->store->verbs->open(t->store, &how, &t->info, NULL);
        if (rc == 0 || (rc != DUE_EBUSY && !again(t, "open", rc)))
            break;
        t->store->verbs->free(t->store);
        t->store = NULL;
    }
    if (rc != 0)
        complain(t, "open", rc);
    return rc == 0;
}

static bool has_landed(const struct trial *t, unsigned number)
{
    char key[64];
    char writer[24];
    char answer[64] = "";

    snprintf(key, sizeof key, "due:{%s}:writers", t->name);
    snprintf(writer, sizeof writer, "%llu", (unsigned long long)t->info.writer);
    long n = redis_server_ask(&t->place->server, (const char *const[]){ "HGET", key, writer, NULL },
                              answer, sizeof answer);
    CREW_CHECK(n > 0, "");
    char *digits = strchr(answer, '\n');
    return answer[0] == '$' && digits != NULL && strtoul(digits + 1, NULL, 10) >= number;
}

static void gives(struct trial *t, unsigned char number)
{
    due_change c[2];
    size_t n = batch(c, t->info.writer, number);
    int rc;

    do {
        rc = t->store->verbs->ready(t->store, until(t));
        if (rc == 0)
            rc = t->store->verbs->commit(t->store, c, n, number, t->began_ns + ONCE);
        if (rc < 0 && rc != DUE_EINDOUBT && rc != DUE_EAGAIN && has_landed(t, number))
            complain(t, "refused, and it has landed", rc);
    } while (again(t, "commit", rc));
    if (rc == 0 && !has_landed(t, number))
        complain(t, "confirmed, and it has not landed", rc);
}

static void reads(struct trial *t, struct seen *seen)
{
    const struct due_store_verbs *v = t->store->verbs;
    int rc = 1;

    for (int first = 1; rc == 1; first = 0)
        do
            rc = v->load(t->store, first, 2, count, seen, until(t));
        while (again(t, "load", rc));
    rc = rc < 0 ? rc : 1;
    for (int first = 1; rc == 1; first = 0)
        do
            rc = v->keys(t->store, first, 2, count_key, seen, until(t));
        while (again(t, "keys", rc));
}

static void stays(struct trial *t)
{
    const struct due_store_verbs *v = t->store->verbs;
    struct seen seen = { .jobs = { 0 } };
    int64_t held;
    int rc;

    do
        rc = v->renew(t->store, &held, until(t));
    while (again(t, "renew", rc));
    do
        rc = v->find(t->store, id_of(t->info.writer, 3), count, &seen, until(t));
    while (again(t, "find", rc));
    if (seen.jobs[3] == 0)
        complain(t, "find finds nothing", rc);
}

/* ---- A cell ---- */

static bool run_cell(struct place *p, const struct error *error, uint64_t command, unsigned number,
                     uint64_t *commands)
{
    struct trial t = { .place = p, .error = error };
    struct seen seen = { .jobs = { 0 } };
    struct fault_cell cell = { .command = command,
                               .where = FAULT_BEFORE,
                               .what = FAULT_REFUSE,
                               .text = error != NULL ? error->text : NULL };
    int64_t cpu = cpu_ns();

    snprintf(t.name, sizeof t.name, "error-%u", number);
    fault_proxy_plan(p->proxy, &cell, error != NULL);
    bool there = opens(&t);
    for (unsigned char k = 1; there && k <= BATCHES && t.wrong == NULL; k++)
        gives(&t, k);
    if (there && t.wrong == NULL)
        reads(&t, &seen);
    if (there && t.wrong == NULL)
        stays(&t);
    *commands = fault_proxy_commands(p->proxy);
    fault_proxy_plan(p->proxy, NULL, 0);
    if (t.wrong == NULL && !all_right(&seen)) {
        complain(&t, "not everything has landed", 0);
        show_seen(&seen, 0);
    }
    cpu = cpu_ns() - cpu;
    if (cpu > CPU)
        complain(&t, "processor time", (int)(cpu / 1000000));
    if (t.store != NULL) {
        (void)t.store->verbs->close(t.store, SOON);
        t.store->verbs->free(t.store);
    }
    if (t.wrong != NULL)
        printf("  %s: %s (%d)\n", t.wrong, due_error_name(t.rc), t.rc);
    return t.wrong == NULL;
}

static unsigned matrix(struct place *p)
{
    const size_t kinds = sizeof errors / sizeof errors[0];
    unsigned wrong = 0;
    unsigned number = 0;
    uint64_t commands;
    uint64_t ignored;

    CREW_CHECK(run_cell(p, NULL, 1, number++, &commands), ": without an error");
    for (uint64_t command = 1; command <= commands; command++)
        for (size_t i = 0; i < kinds; i++) {
            crew_doing(errors[i].text);
            if (run_cell(p, &errors[i], command, number++, &ignored))
                continue;
            printf("  WRONG: %.20s at command %llu of %llu\n", errors[i].text,
                   (unsigned long long)command, (unsigned long long)commands);
            wrong++;
        }
    printf("error matrix: %llu commands, %u cells, %u wrong\n", (unsigned long long)commands,
           number - 1, wrong);
    return wrong;
}

int main(void)
{
    static struct place place;

    if (!place_open(&place))
        return 77;
    place.options.lease_ns = DUE_S(1);
    crew_watchdog("store_errors", 280);
    unsigned wrong = matrix(&place);
    place_close(&place);
    return wrong > 0;
}

#else

int main(void)
{
    printf("store_errors: built without the Redis store\n");
    return 77;
}

#endif
