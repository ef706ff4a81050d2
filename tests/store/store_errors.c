/* store_errors.c - every error that a server may answer, and every reply of another type than the
 * right one, at every command of the Redis store: of an opening, of batches, of reading them back,
 * of mending what is damaged, of staying the owner and of closing.
 *
 * Errors: in each cell one command is refused once.  What the calls may answer is in the table
 * below; a batch that is answered with an error has not landed, and lands when it is given again;
 * every call is back in its time, and costs next to no processor time; in the end everything has
 * landed once, and the next owner finds it.
 *
 * Types: in each cell one reply is another one, well-formed, of a command that the server has done,
 * or never had.  (One that does a transaction in part is found out by the owner of a batch, who has
 * it still; of what it loses of a repair nothing is left, so that is not tried.)  Then the same
 * holds, and the outcome is one of three:
 *
 *   seen through  no call answers an error
 *   told          one call answers DUE_ECORRUPT, once, and what it should do is done by the next
 *   believed      the reply could have been the truth: see the table.  One call answers
 *                 accordingly; what is stored is as it was
 */
#include <stdio.h>
#include <string.h>

#ifdef DUE_HAVE_REDIS

#include "lab/redis/redis_trial.h"

#define COMMANDS 200 /* more than there are in a cell */

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
    { "-ERR unknown command", DUE_EACCES },
};

/* One of each type, and arrays of what no command answers. */
static const char *const types[] = {
    ":1", "+OK", "$-1", "*0", "$3\r\nabc", "*1\r\n:1", "*1\r\n*1\r\n$3\r\nabc", "*2\r\n*0\r\n$-1",
};

/* Replies that could be true, and what is believed then. */
static const struct {
    const char *command;
    const char *reply;
} beliefs[] = {
    { "HKEYS", "*0" },  /* there are no topics: none of their jobs is shown */
    { "ZRANGE", "*0" }, /* or they are empty */
    { "HGET", "$-1" },  /* there is no such job */
};

/* What an owner goes through. */
struct plot {
    const char *name;
    void (*prepare)(struct trial *t); /* with nothing in the way; NULL: nothing */
    void (*run)(struct trial *t);
    const char *(*look)(const struct trial *t); /* in the end: what is wrong, or NULL */
    bool twice; /* replies of the wrong type of what was never done, too */

    uint64_t commands; /* of run() */
    char names[COMMANDS][24];
    atomic_uint seen_through; /* cells of the type matrix, by their outcome */
    atomic_uint told;
    atomic_uint believed;
};

/* ---- What an owner goes through ---- */

/* Jobs, and what somebody else has done to them: a member without a record, a record that stands
 * nowhere, and a job that waits among the dead. */
static void damage(struct trial *t)
{
    static const char script[] = "local k='due:{'..ARGV[1]..'}:' "
                                 "local last=redis.call('ZRANGE',k..'t:t',-1,-1)[1] "
                                 "local first=redis.call('ZRANGE',k..'t:t',0,0)[1] "
                                 "redis.call('ZREM',k..'t:t',first,last) "
                                 "redis.call('ZADD',k..'dead',1,first) "
                                 "redis.call('ZADD',k..'t:t',1,'short') "
                                 "return 1";
    due_change stray;

    if (!trial_opens(t))
        return;
    for (unsigned char k = 1; k <= BATCHES && t->wrong == NULL; k++)
        trial_gives(t, k);
    stray = change(DUE_CHANGE_PUT, t->info.writer, 4);
    stray.record.key_len = 0;
    trial_commits(t, &stray, 1, BATCHES + 1);
    trial_closes(t);
    TRIAL_ASK(t, "EVAL", script, "0", t->name);
    t->author = t->info.writer;
}

/* Of two records, one waits and one is dead; two things were set aside. */
static const char *is_mended(const struct trial *t)
{
    static const struct {
        const char *command, *key, *answer;
    } there[] = { { "HLEN", "j", ":2\r\n" },
                  { "HLEN", "q", ":2\r\n" },
                  { "ZCARD", "t:t", ":1\r\n" },
                  { "ZCARD", "dead", ":1\r\n" } };
    char key[64];
    char answer[64];

    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++) {
        snprintf(key, sizeof key, "due:{%s}:%s", t->name, there[i].key);
        long n = redis_server_ask(&t->place->server,
                                  (const char *const[]){ there[i].command, key, NULL }, answer,
                                  sizeof answer);
        if (n <= 0 || strcmp(answer, there[i].answer) != 0)
            return there[i].key;
    }
    return NULL;
}

static struct plot plots[] = {
    { .name = "an owner's life", .run = trial_lives, .twice = true },
    { .name = "a damaged queue", .prepare = damage, .run = trial_takes_over, .look = is_mended },
};

/* ---- A cell ---- */

static void prepare(struct trial *t, const struct plot *plot)
{
    bool (*may)(struct trial *, const char *, int) = t->may;

    fault_proxy_plan(t->place->proxy, NULL, 0);
    t->may = NULL;
    if (plot->prepare != NULL)
        plot->prepare(t);
    CREW_CHECK(t->wrong == NULL, ": %s %s", t->wrong, due_error_name(t->rc));
    t->may = may;
}

static void look(struct trial *t, const struct plot *plot)
{
    fault_proxy_plan(t->place->proxy, NULL, 0);
    if (t->wrong == NULL)
        trial_verify(t);
    const char *wrong = t->wrong == NULL && plot->look != NULL ? plot->look(t) : NULL;
    if (wrong != NULL)
        trial_complain(t, wrong, 0);
}

/* Without a fault: how many commands there are, and their names. */
static void count_commands(struct place *p, struct plot *plot)
{
    struct trial t = { .ctx = NULL };

    trial_begin(&t, p, "plain", (size_t)(plot - plots));
    prepare(&t, plot);
    fault_proxy_plan(p->proxy, NULL, 0);
    plot->run(&t);
    plot->commands = fault_proxy_commands(p->proxy);
    CREW_CHECK(plot->commands < COMMANDS, "");
    for (uint64_t i = 1; i <= plot->commands; i++)
        (void)fault_proxy_name(p->proxy, i, plot->names[i]);
    CREW_CHECK(all_right(&t.seen), "");
    look(&t, plot);
    CREW_CHECK(trial_end(&t, "without a fault"), "");
}

/* Run it with this fault, and look at what is stored. */
static void run_with(struct trial *t, const struct plot *plot, const struct fault_cell *fault)
{
    prepare(t, plot);
    fault_proxy_plan(t->place->proxy, fault, 1);
    plot->run(t);
    if (fault_proxy_struck(t->place->proxy) != 1)
        trial_complain(t, "the fault did not strike", 0);
    look(t, plot);
}

/* ---- Errors ---- */

static bool may_refuse(struct trial *t, const char *call, int rc)
{
    const struct error *error = t->ctx;

    (void)call;
    return rc == error->answer && t->told == 1;
}

static bool run_error(struct place *p, size_t number, void *ctx)
{
    const size_t kinds = sizeof errors / sizeof errors[0];
    const struct plot *plot = ctx;
    const struct error *error = &errors[number % kinds];
    uint64_t command = number / kinds + 1;
    struct trial t = { .may = may_refuse, .ctx = (void *)error };
    struct fault_cell fault = {
        .command = command, .where = FAULT_BEFORE, .what = FAULT_REFUSE, .text = error->text
    };
    char what[96];

    trial_begin(&t, p, "error", number);
    run_with(&t, plot, &fault);
    if (t.wrong == NULL && !all_right(&t.seen)) {
        trial_complain(&t, "not everything was shown", 0);
        show_seen(&t.seen, 0);
    }
    snprintf(what, sizeof what, "%.20s at %s, command %llu", error->text, plot->names[command],
             (unsigned long long)command);
    return trial_end(&t, what);
}

/* ---- Types ---- */

/* How a trial of this matrix goes. */
struct lie {
    unsigned corrupt;
    unsigned others; /* answers that only a reply that was believed explains */
};

static bool may_be_misled(struct trial *t, const char *call, int rc)
{
    struct lie *lie = t->ctx;

    lie->corrupt += rc == DUE_ECORRUPT;
    lie->others += rc == DUE_ELOST || (rc == DUE_ENOENT && strcmp(call, "find") == 0);
    return t->told == 1 && lie->corrupt + lie->others == 1;
}

static bool could_be_true(const char *command, const char *reply)
{
    for (size_t i = 0; i < sizeof beliefs / sizeof beliefs[0]; i++)
        if (strcmp(beliefs[i].command, command) == 0 && strcmp(beliefs[i].reply, reply) == 0)
            return true;
    return false;
}

static bool run_type(struct place *p, size_t number, void *ctx)
{
    const size_t kinds = sizeof types / sizeof types[0];
    struct plot *plot = ctx;
    enum fault_where where = FAULT_SENT;
    struct lie lie = { 0 };
    struct trial t = { .may = may_be_misled, .ctx = &lie };

    if (plot->twice) {
        where = number % 2 == 0 ? FAULT_SENT : FAULT_BEFORE;
        number /= 2;
    }
    const char *reply = types[number % kinds];
    uint64_t command = number / kinds + 1;
    struct fault_cell fault = {
        .command = command, .where = where, .what = FAULT_REPLACE, .text = reply
    };
    char what[96];

    trial_begin(&t, p, "type", number);
    run_with(&t, plot, &fault);
    bool believed = lie.others > 0 || !all_right(&t.seen);
    if (t.wrong == NULL && believed && !could_be_true(plot->names[command], reply)) {
        trial_complain(&t, "the reply was believed", 0);
        show_seen(&t.seen, 0);
    }
    atomic_fetch_add(believed     ? &plot->believed
                     : t.told > 0 ? &plot->told
                                  : &plot->seen_through,
                     1);
    snprintf(what, sizeof what, "%.12s %s %s, command %llu", reply,
             where == FAULT_SENT ? "after" : "instead of", plot->names[command],
             (unsigned long long)command);
    for (char *c = what; *c != '\0'; c++)
        if (*c == '\r' || *c == '\n')
            *c = ' ';
    return trial_end(&t, what);
}

/* ---- Both ---- */

/* How many of the cells that are counted in *@cells were as they should be. */
static size_t run_matrix(struct matrix *m, const char *name, struct plot *plot, size_t kinds,
                         bool (*run)(struct place *place, size_t cell, void *ctx), size_t *cells)
{
    size_t n = plot->commands * kinds;

    crew_doing(name);
    m->run = run;
    m->ctx = plot;
    size_t tried = 0;
    size_t right = 0;
    matrix_run(m, n, &tried, &right);
    printf("%s of %s: %zu of %zu cells, %llu commands\n", name, plot->name, right, tried,
           (unsigned long long)plot->commands);
    *cells += tried;
    return right;
}

int main(int argc, char **argv)
{
    static struct matrix m;
    size_t cells = 0;
    size_t right = 0;

    matrix_options(argc, argv);
    if (!matrix_open(&m))
        return 77;
    crew_watchdog("store_errors", 280);
    for (size_t i = 0; i < sizeof plots / sizeof plots[0]; i++) {
        struct plot *plot = &plots[i];
        size_t kinds = (1 + plot->twice) * (sizeof types / sizeof types[0]);

        count_commands(&m.places[0], plot);
        right +=
            run_matrix(&m, "errors", plot, sizeof errors / sizeof errors[0], run_error, &cells);
        right += run_matrix(&m, "types", plot, kinds, run_type, &cells);
        printf("  of types %u seen through, %u told, %u believed\n",
               atomic_load(&plot->seen_through), atomic_load(&plot->told),
               atomic_load(&plot->believed));
    }
    matrix_close(&m);
    matrix_say("error matrix", right, cells);
    return right != cells;
}

#else

int main(void)
{
    printf("store_errors: built without the Redis store\n");
    return 77;
}

#endif
