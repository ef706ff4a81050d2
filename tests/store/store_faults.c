/* store_faults.c - every fault at every point of every command of the Redis store: of an opening,
 * of batches, of reading them back, of staying the owner and of closing; and of each connection.
 *
 * Each cell is the life of one owner with one fault in it.  Whatever the fault, each call is back
 * in its time, and waits without burning the processor; everything lands once, and the next owner
 * finds it.  What the server gets late, on a connection that was given up, changes nothing: it
 * comes while the owner still lives, or to the next one, who stays the owner.
 *
 * All of it is done three times: on a plain server; on a full one, which is taken over and drained
 * by scripts and takes no job; and on one whose replica has whatever is confirmed.
 */
#include <stdio.h>
#include <string.h>

#ifdef DUE_HAVE_REDIS

#include "lab/redis/redis_replica.h"
#include "lab/redis/redis_trial.h"

#define ANSWER_NS DUE_MS(40)
#define DELAY_MS  15 /* a late reply is in time */
#define RUNS      3  /* of a cell whose fault does not strike */
#define SLOW_MS   25 /* from byte to byte: of two bytes the second is, of three the third is not */

static const char *const where_names[] = { [FAULT_BEFORE] = "before",
                                           [FAULT_MID_COMMAND] = "in the middle of",
                                           [FAULT_SENT] = "after",
                                           [FAULT_MID_REPLY] = "in the reply of",
                                           [FAULT_ACCEPT] = "at connection" };

/* What happens at each point of each command. */
static const struct kind {
    enum fault_what what;
    const char *text;
    bool next; /* what is late comes to the next owner */
} kinds[] = {
    { FAULT_RESET, "reset", false },
    { FAULT_CLOSE, "closed", false },
    { FAULT_HALF, "half closed", false },
    { FAULT_STALL, "stalled", false },
    { FAULT_STALL, "stalled until the next owner is there,", true },
    { FAULT_DELAY, "delayed", false },
    { FAULT_TRICKLE, "trickling", false },
};

/* And to each connection when it is made. */
static const struct kind greetings[] = {
    { FAULT_RESET, "reset", false },
    { FAULT_CLOSE, "closed", false },
    { FAULT_STALL, "stalled", false },
    { FAULT_DELAY, "delayed", false },
};

#define POINTS    4 /* of a command */
#define KINDS     (sizeof kinds / sizeof kinds[0])
#define GREETINGS (sizeof greetings / sizeof greetings[0])

/* What an owner goes through. */
struct pass {
    const char *name;
    void (*prepare)(struct trial *t); /* with nothing in the way; NULL: nothing */
    void (*run)(struct trial *t);
    void (*clean)(struct trial *t); /* what prepare() did to the server; NULL: nothing */
    bool replicas;

    uint64_t commands; /* of run() */
    uint64_t connections;
    struct redis_server replica[MATRIX_PLACES];
    struct matrix matrix;
    atomic_llong cpu_most_ns;
};

/* ---- What an owner goes through ---- */

static void settle(const struct trial *t)
{
    CREW_CHECK(fault_proxy_settle(t->place->proxy, 20000), ": what came late");
}

/* What is late comes now, and then all is read again. */
static void live_on(struct trial *t)
{
    const bool *next = t->ctx; /* NULL: nothing is late */

    if (t->wrong == NULL)
        trial_reads(t);
    if (t->wrong == NULL)
        trial_stays(t);
    if (t->wrong == NULL && next != NULL && !*next) {
        settle(t);
        trial_reads(t);
    }
    if (t->wrong == NULL && !all_right(&t->seen)) {
        trial_complain(t, "not everything was shown", 0);
        show_seen(&t->seen, 0);
    }
    trial_closes(t);
}

static void give_all(struct trial *t)
{
    bool there = trial_opens(t);

    for (unsigned char k = 1; there && k <= BATCHES && t->wrong == NULL; k++)
        trial_gives(t, k);
}

static void live(struct trial *t)
{
    give_all(t);
    live_on(t);
}

/* The batches, and job 4; then the server is full. */
static void fill(struct trial *t)
{
    due_change more;

    give_all(t);
    more = change(DUE_CHANGE_PUT, t->info.writer, 4);
    trial_commits(t, &more, 1, BATCHES + 1);
    trial_closes(t);
    t->author = t->info.writer;
    TRIAL_ASK(t, "CONFIG", "SET", "maxmemory", "1");
}

/* Job 4 is dropped, and job 5 is refused. */
static void drain(struct trial *t)
{
    if (!trial_opens(t))
        return;
    due_change more = change(DUE_CHANGE_PUT, t->info.writer, 5);
    due_change gone = change(DUE_CHANGE_DROP, t->author, 4);
    trial_is_full(t, &more, 1, 1);
    if (t->wrong == NULL)
        trial_commits(t, &gone, 1, 1);
    live_on(t);
    if (t->wrong == NULL && (t->seen.jobs[4] != 0 || t->seen.jobs[5] != 0))
        trial_complain(t, "a job that is not there was shown", 0);
}

static void make_room(struct trial *t)
{
    TRIAL_ASK(t, "CONFIG", "SET", "maxmemory", "0");
}

static struct pass passes[] = {
    { .name = "a plain server", .run = live },
    { .name = "a full server", .prepare = fill, .run = drain, .clean = make_room },
    { .name = "a server with a replica", .run = live, .replicas = true },
};

/* ---- A cell ---- */

/* @fault is NULL or one; answers whether it struck. */
static bool run_calls(struct trial *t, const struct pass *pass, const struct fault_cell *fault)
{
    struct fault_proxy *proxy = t->place->proxy;

    fault_proxy_plan(proxy, NULL, 0);
    if (pass->prepare != NULL)
        pass->prepare(t);
    CREW_CHECK(t->wrong == NULL, ": %s %s", t->wrong, due_error_name(t->rc));
    fault_proxy_plan(proxy, fault, fault != NULL);
    pass->run(t);
    return fault_proxy_struck(proxy) == 1;
}

/* What the run has asked is right, whether or not it has got as far as the fault. */
static bool try_cell(struct place *p, struct pass *pass, size_t number, const struct kind *kind,
                     const struct fault_cell *fault, bool last, bool *struck)
{
    char what[128];
    struct trial t = { .ctx = (void *)&kind->next,
                       .replica = pass->replicas ? &pass->replica[p - pass->matrix.places] : NULL };

    trial_begin(&t, p, "fault", number);
    *struck = run_calls(&t, pass, fault);
    if (last && !*struck)
        trial_complain(&t, "the fault did not strike", 0);
    if (pass->clean != NULL)
        pass->clean(&t);
    trial_verify(&t);
    snprintf(what, sizeof what, "%s %s %llu on %s", kind->text, where_names[fault->where],
             (unsigned long long)fault->command, pass->name);
    bool right = trial_end(&t, what);
    long long most = atomic_load(&pass->cpu_most_ns);
    while (t.cpu_ns > most && !atomic_compare_exchange_weak(&pass->cpu_most_ns, &most, t.cpu_ns))
        continue;
    return right;
}

/* How many commands there are depends on time too, on a busy machine: a run that had fewer is
 * repeated. */
static bool run_cell(struct place *p, size_t number, void *ctx)
{
    struct pass *pass = ctx;
    size_t command = number / (POINTS * KINDS);
    size_t greeting = number - pass->commands * POINTS * KINDS;
    struct kind kind = kinds[number / POINTS % KINDS];
    struct fault_cell fault = { .command = command + 1,
                                .where = (enum fault_where)(number % POINTS) };
    bool struck = false;
    bool right = true;

    if (command >= pass->commands) {
        kind = greetings[greeting % GREETINGS];
        fault.command = greeting / GREETINGS + 1;
        fault.where = FAULT_ACCEPT;
    }
    fault.what = kind.what;
    fault.delay_ms = kind.what == FAULT_TRICKLE ? SLOW_MS : DELAY_MS;
    for (unsigned run = 1; right && !struck && run <= RUNS; run++)
        right = try_cell(p, pass, number, &kind, &fault, run == RUNS, &struck);
    return right;
}

/* ---- All of them ---- */

static bool open_pair(struct place *p, struct redis_server *replica)
{
    int rc = redis_primary_start(&p->server, NULL);

    if (rc == REDIS_SERVER_MISSING)
        return false;
    CREW_CHECK(rc == 0, ": the server does not start");
    CREW_CHECK(redis_replica_start(replica, &p->server, NULL) == 0, ": it has no replica");
    place_begin(p);
    return true;
}

static bool open_places(struct pass *pass)
{
    bool opened = true;

    for (size_t i = 0; i < MATRIX_PLACES && opened; i++) {
        struct place *p = &pass->matrix.places[i];

        opened = pass->replicas ? open_pair(p, &pass->replica[i]) : place_open(p);
        p->options.lease_ns = DUE_S(1);
        p->options.wait_replicas = pass->replicas;
    }
    return opened;
}

static void close_places(struct pass *pass)
{
    matrix_close(&pass->matrix);
    for (size_t i = 0; i < MATRIX_PLACES && pass->replicas; i++)
        redis_server_stop(&pass->replica[i]);
}

/* Without a fault, and without haste: how many commands there are at least.  A call that is not
 * answered in time costs some more. */
static void count_commands(struct pass *pass)
{
    struct place *p = &pass->matrix.places[0];

    pass->commands = UINT64_MAX;
    for (size_t i = 0; i < 3; i++) {
        struct trial t = { .ctx = NULL };

        trial_begin(&t, p, "plain", i);
        (void)run_calls(&t, pass, NULL);
        uint64_t commands = fault_proxy_commands(p->proxy);
        pass->commands = commands < pass->commands ? commands : pass->commands;
        pass->connections = fault_proxy_connections(p->proxy);
        if (pass->clean != NULL)
            pass->clean(&t);
        trial_verify(&t);
        CREW_CHECK(trial_end(&t, "without a fault"), "");
    }
}

static void hasten(struct pass *pass)
{
    for (size_t i = 0; i < MATRIX_PLACES; i++) {
        due_redis_options *o = &pass->matrix.places[i].options;

        o->connect_ns = DUE_MS(100);
        o->answer_ns = ANSWER_NS;
        o->wait_replicas_ns = DUE_MS(40);
    }
}

int main(int argc, char **argv)
{
    size_t cells = 0;
    size_t right = 0;

    matrix_options(argc, argv);
    crew_watchdog("store_faults", 280);
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        struct pass *pass = &passes[i];

        if (!open_places(pass))
            return 77;
        crew_doing(pass->name);
        count_commands(pass);
        hasten(pass);
        pass->matrix.run = run_cell;
        pass->matrix.ctx = pass;
        size_t n = pass->commands * POINTS * KINDS + pass->connections * GREETINGS;
        size_t tried = 0;
        size_t good = 0;
        matrix_run(&pass->matrix, n, &tried, &good);
        printf("%s: %zu of %zu cells, %llu commands; at most %lld us of the processor\n",
               pass->name, good, tried, (unsigned long long)pass->commands,
               atomic_load(&pass->cpu_most_ns) / 1000);
        close_places(pass);
        cells += tried;
        right += good;
    }
    matrix_say("fault matrix", right, cells);
    return right != cells;
}

#else

int main(void)
{
    printf("store_faults: built without the Redis store\n");
    return 77;
}

#endif
