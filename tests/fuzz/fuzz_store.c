/* fuzz_store.c - the whole store before a server that answers each command with anything.
 *
 * The input says what the queue asks for, and how each command is answered: as an honest server
 * would, or with another shape, another size, an error, garbage, silence, or the end of the
 * connection.  Whatever comes, the store keeps within its memory, and answers what a store may.
 *
 * There is no server and no time: the socket is one end of a pair, and whoever waits for it serves
 * the other end (due__wait() is ours, and so is the clock).  So an input always does the same.
 *
 * Input   the number of calls, two bytes for each, and then the replies (hostile_server.c)
 */
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "due/redis.h"
#include "hostile_server.h"
#include "redis/link/backoff.h"
#include "redis/link/socket.h"
#include "base/wait.h"

#define BATCH   8
#define STEP_NS 200000 /* each look at the clock */

/* ---- What is not real ------------------------------------------------------------------------ */

static int64_t now_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t); /* by the linker */

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    now_ns += STEP_NS;
    *t = (struct timespec){ .tv_sec = now_ns / DUE_S(1), .tv_nsec = now_ns % DUE_S(1) };
    return 0;
}

void due__backoff_init(struct due__backoff *b, int64_t min_ns, int64_t max_ns, uint64_t seed)
{
    *b = (struct due__backoff){ .min_ns = min_ns, .max_ns = max_ns, .random = seed };
}

int64_t due__backoff_next(struct due__backoff *b)
{
    return b->min_ns;
}

bool due__targets_find(struct due__targets *t, const struct due__address *address)
{
    (void)address;
    *t = (struct due__targets){ 0 };
    t->next = &t->local;
    return true;
}

void due__targets_free(struct due__targets *t)
{
    *t = (struct due__targets){ 0 };
}

size_t due__targets_left(const struct due__targets *t)
{
    return t->next != NULL;
}

bool due__socket_connected(int fd, const char **trouble)
{
    (void)fd;
    (void)trouble;
    return true;
}

int due__targets_begin(struct due__targets *t, const char **trouble)
{
    t->next = NULL;
    *trouble = "no";
    return hostile_connect();
}

enum due__wait due__wait(const struct due__ears *e, int64_t awake_ns, int64_t until_ns)
{
    struct pollfd p[2] = { { .fd = e->bell, .events = POLLIN },
                           { .fd = e->fd, .events = e->events } };
    uint64_t times;

    (void)awake_ns;
    hostile_serve();
    if (poll(p, 2, 0) > 0) {
        if (p[0].revents != 0 && read(e->bell, &times, sizeof times) > 0)
            return DUE__WAIT_BELL;
        if (p[1].revents != 0)
            return DUE__WAIT_READY;
    }
    if (until_ns > now_ns)
        now_ns = until_ns < now_ns + DUE_S(10) ? until_ns : now_ns + DUE_S(10);
    return DUE__WAIT_TIME;
}

/* ---- The queue ------------------------------------------------------------------------------- */

static struct {
    due_store *store;
    struct due_store_info info;
    due_change batch[BATCH];
    size_t n;
    uint64_t number;
    uint64_t sequence;
    bool doubt;
    unsigned sum; /* of all bytes that were shown: so that they are looked at */
} queue;

static void look_at(const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        queue.sum += ((const unsigned char *)bytes)[i];
}

static int visit(void *ctx, const due_record *r)
{
    unsigned how = *(const unsigned *)ctx;

    look_at(r->id.byte, sizeof r->id.byte);
    look_at(r->topic, strlen(r->topic) + 1);
    look_at(r->data, r->len);
    look_at(r->key, r->key_len);
    look_at(r->headers, r->headers_len);
    look_at(r->group, r->group_len);
    if (r->reason != NULL)
        look_at(r->reason, strlen(r->reason) + 1);
    if (r->deadline_ns < 0)
        return DUE_ECORRUPT;
    return how == 255 ? DUE_ENOMEM : 0;
}

static int visit_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    (void)id;
    (void)until_ns;
    assert(len > 0 && len <= DUE_KEY_MAX);
    look_at(key, len);
    return *(const unsigned *)ctx == 255 ? DUE_ENOMEM : 0;
}

static int64_t soon(void)
{
    return now_ns + DUE_MS(100);
}

/* It has lost batches: what was in doubt has not landed. */
static int heard(int rc)
{
    queue.doubt = queue.doubt && rc != DUE_ELOST;
    return rc;
}

static void write_batch(unsigned how)
{
    static const enum due_change_kind kinds[] = { DUE_CHANGE_PUT,  DUE_CHANGE_PUT,
                                                  DUE_CHANGE_MOVE, DUE_CHANGE_BURY,
                                                  DUE_CHANGE_DROP, DUE_CHANGE_KEEP,
                                                  DUE_CHANGE_DROP, DUE_CHANGE_FORGET };

    queue.n = how % BATCH + 1;
    for (size_t i = 0; i < queue.n; i++) {
        due_change *c = &queue.batch[i];

        *c = (due_change){ .kind = how & 64 ? DUE_CHANGE_DROP : kinds[(how + i) % 8],
                           .was_ns = 5000,
                           .was_dead = (how >> 4) & 1,
                           .record = { .id = hostile_id(queue.sequence++ % 64),
                                       .deadline_ns = 6000,
                                       .until_ns = 7000,
                                       .topic = how & 8 ? "a" : "" } };
        c->record.key = how & 32 || c->kind >= DUE_CHANGE_KEEP ? "key" : NULL;
        c->record.key_len = c->record.key != NULL ? 3 : 0;
        c->key_kept_ns = c->kind == DUE_CHANGE_KEEP ? 9000 : 0;
        if (c->kind == DUE_CHANGE_BURY)
            c->record.cause = DUE_CAUSE_BURIED;
    }
}

static void commit(unsigned how)
{
    const struct due_store_verbs *v = queue.store->verbs;

    if (!queue.doubt) {
        write_batch(how);
        if ((how & 128) != 0 && v->prepare(queue.store, queue.batch, queue.n, queue.number) == 0 &&
            (how & 8) != 0)
            queue.doubt = v->send(queue.store, queue.number, soon()) == 0;
    }
    int rc = heard(v->commit(queue.store, queue.batch, queue.n, queue.number, soon()));
    assert(rc <= 0);
    queue.number += rc == 0;
    queue.doubt = rc == DUE_EINDOUBT || (rc == DUE_EAGAIN && queue.doubt);
}

static void call(unsigned what, unsigned how)
{
    const struct due_store_verbs *v = queue.store->verbs;
    struct due_store_stats stats;
    int64_t held;

    switch (what % 8) {
    case 0:
    case 1:
        (void)heard(v->load(queue.store, how % 16 == 0, how, visit, &how, soon()));
        break;
    case 2:
        (void)heard(v->keys(queue.store, how % 16 == 0, how, visit_key, &how, soon()));
        break;
    case 3:
        (void)heard(v->find(queue.store, hostile_id(how), visit, &how, soon()));
        break;
    case 4:
        (void)heard(v->renew(queue.store, &held, soon()));
        break;
    case 5:
        if (how < 64)
            v->interrupt(queue.store);
        (void)heard(v->ready(queue.store, soon()));
        break;
    default:
        commit(how);
        break;
    }
    v->stats(queue.store, &stats);
    assert(stats.bytes_out >= stats.batches);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    due_redis_options o = { DUE_REDIS_OPTIONS_INIT };
    due_error error;

    hostile_begin(data, size);
    memset(&queue, 0, sizeof queue);
    now_ns = DUE_S(1000);
    queue.number = 1;
    size_t calls = 2 * (hostile_byte() % 64);
    const uint8_t *what = hostile_bytes(&calls);
    o.wait_replicas = (int)(calls % 3 == 2);
    if (due_redis_open(&queue.store, "unix:///nowhere", &o, &error) != 0)
        abort();
    struct due_store_open how = { .name = "q", .until_ns = now_ns + DUE_S(1) };
    if (queue.store->verbs->open(queue.store, &how, &queue.info, &error) == 0) {
        for (size_t i = 0; i + 1 < calls; i += 2)
            call(what[i], what[i + 1]);
        (void)queue.store->verbs->close(queue.store, soon());
    }
    due_redis_free(queue.store);
    hostile_end();
    return 0;
}
