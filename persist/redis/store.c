/* store.c - the Redis store: opening, and the table of its verbs. */
#define _GNU_SOURCE
#include "redis/share/share.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/name.h"
#include "os/sized.h"
#define LEASE_MIN     DUE_MS(20)
#define TIME_MAX      DUE_S(86400 * 365)
#define CHANGES_MAX   16384
#define ELEMENTS_MAX  262144
#define SKEW_NS       DUE_MS(100)
#define REAL_CLOCK_NS DUE_S(1) /* a queue's clock that is so near the real one is it */
#define PATIENCE      3u       /* calls that an interrupt may end before one goes on */

/* ---- Opening --------------------------------------------------------------------------------- */

/* What a store consists of. */
struct store {
    struct due__redis redis; /* first: it is what the verbs get */
    struct due__redis_load load;
    struct due__redis_kept kept;
    struct due__share share;
};

static struct due__redis *redis_of(due_store *store)
{
    return (struct due__redis *)store;
}

static void warn_of_skew(struct due__redis *s, int64_t server_ns)
{
    int64_t real = due__clock_ns(CLOCK_REALTIME);

    if (s->how.now == NULL)
        return;
    int64_t queue = s->how.now(s->how.clock);
    if (queue > real + REAL_CLOCK_NS || queue < real - REAL_CLOCK_NS)
        return;
    int64_t skew = server_ns - real;
    if (skew > SKEW_NS || skew < -SKEW_NS)
        due__store_log(&s->how, DUE_LOG_WARNING,
                       "the server's clock and ours differ by %" PRId64 " ms: due times are ours",
                       skew / 1000000);
}

/* It was shared. */
static int own(struct due__redis *s, int64_t until_ns)
{
    s->open = true;
    int rc = due__share_fold(s, until_ns);
    if (rc != 0) {
        due__share_give_up(s, rc, until_ns);
        s->open = s->fenced = false;
    }
    return rc;
}

static int open_store(due_store *store, const struct due_store_open *how,
                      struct due_store_info *info, due_error *error)
{
    struct due__redis *s = redis_of(store);
    int64_t until_ns = s->set.standby ? DUE_FOREVER : how->until_ns;
    int rc = s->share->joined ? DUE_EINVAL : due__redis_begin(s, how);

    due__share_name(s);
    if (rc == 0)
        rc = due__redis_reach(s, until_ns);
    if (rc == 0)
        rc = due__redis_take_over(s, until_ns);
    if (rc == DUE_EBUSY && s->met_sharers)
        due__share_say_who(s, until_ns);
    if (rc == 0 && s->mode != DUE__MODE_OWNER)
        rc = own(s, until_ns);
    if (rc != 0) {
        due__flight_crash(s);
        if (error != NULL) {
            snprintf(error->text, sizeof error->text, "%s", s->trouble);
            snprintf(error->hint, sizeof error->hint, "%s", s->hint);
        }
        return rc;
    }
    s->open = true;
    if (s->set.batch_changes == 0)
        s->set.batch_changes = s->durability == DUE_DURABLE_ALWAYS ? 1024 : 256;
    warn_of_skew(s, s->server_ns);
    *info = (struct due_store_info){ .writer = s->writer,
                                     .batch_changes = s->set.batch_changes,
                                     .batch_bytes = s->set.batch_bytes,
                                     .renew_ns = s->set.lease_ns / 3,
                                     .durability = s->durability,
                                     .jobs = s->jobs,
                                     .payload_max = s->payload_max,
                                     .put_again = s->unsure,
                                     .held_ns = s->held_ns };
    return 0;
}

/* ---- The verbs ------------------------------------------------------------------------------- */

static int verb_open(due_store *store, const struct due_store_open *how,
                     struct due_store_info *info, due_error *error)
{
    return due__redis_show(redis_of(store), open_store(store, how, info, error));
}

/* What the server has lost is said once, by whichever call comes first.  If it has fallen back to
 * when the queue was not owned yet, it is made so again before. */
static int say_loss(struct due__redis *s, int rc, int64_t until_ns)
{
    if (rc < 0 || !s->lost)
        return rc;
    s->lost = false;
    rc = s->mode != DUE__MODE_OWNER ? due__share_fold(s, until_ns) : 0;
    s->lost = rc != 0;
    if (rc != 0)
        return s->fenced ? DUE_EFENCED : DUE_EAGAIN;
    return DUE_ELOST;
}

static int verb_ready(due_store *store, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);

    due__link_look(s->link); /* has the server closed the connection? */
    int rc = due__redis_up(s, until_ns);
    return due__redis_show(s, say_loss(s, rc, until_ns));
}

static int verb_prepare(due_store *store, const due_change *changes, size_t n, uint64_t number)
{
    return due__redis_prepare(redis_of(store), changes, n, number);
}

static int verb_send(due_store *store, uint64_t number, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);

    return due__redis_show(s, due__redis_send(s, number, until_ns));
}

static int verb_commit(due_store *store, const due_change *changes, size_t n, uint64_t number,
                       int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = due__redis_commit(s, changes, n, number, until_ns);

    if (rc == 0) {
        pthread_mutex_lock(&s->lock);
        s->shown.round_trip_ns = due__mono_ns() - s->batch_ns;
        pthread_mutex_unlock(&s->lock);
    }
    return due__redis_show(s, rc);
}

/* Reading back takes several answers one after another, which a batch in between makes worthless.
 * After some calls that were interrupted one goes on to its end, so that it gets on however often
 * it is interrupted, and whatever is committed in between. */
static void begin_reading(struct due__redis *s)
{
    due__link_deafen(s->link, s->cut_short >= PATIENCE);
}

static int end_reading(struct due__redis *s, int rc, int64_t until_ns)
{
    bool cut = rc == DUE_EAGAIN && until_ns > due__mono_ns();

    due__link_deafen(s->link, false);
    s->cut_short = cut && s->cut_short < PATIENCE ? s->cut_short + 1 : 0;
    return say_loss(s, rc, until_ns);
}

static int verb_load(due_store *store, int rewind, size_t max, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct due__redis *s = redis_of(store);

    begin_reading(s);
    int rc = due__redis_load(s, rewind, max, visit, ctx, until_ns);
    return due__redis_show(s, end_reading(s, rc, until_ns));
}

static int verb_find(due_store *store, due_id id, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = s->share->joined ? due__share_verb_find(s, id, visit, ctx, until_ns)
                              : due__redis_find(s, id, visit, ctx, until_ns);

    return due__redis_show(s, rc);
}

static int verb_keys(due_store *store, int rewind, size_t max, due_store_visit_key *visit,
                     void *ctx, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);

    begin_reading(s);
    int rc = due__redis_kept(s, rewind, max, visit, ctx, until_ns);
    return due__redis_show(s, end_reading(s, rc, until_ns));
}

static int verb_topics(due_store *store, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);

    begin_reading(s);
    int rc = due__redis_settings(s, visit, ctx, until_ns);
    return due__redis_show(s, end_reading(s, rc, until_ns));
}

static int verb_renew(due_store *store, int64_t *held_ns, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);

    return due__redis_show(s, say_loss(s, due__redis_renew(s, held_ns, until_ns), until_ns));
}

static int verb_close(due_store *store, int64_t until_ns)
{
    struct due__redis *s = redis_of(store);
    int rc = 0;

    if (s->open && !s->closed) {
        rc = due__redis_hand_over(s, until_ns);
        s->closed = rc == 0 || rc == DUE_EFENCED;
    }
    return due__redis_show(s, rc);
}

static void verb_interrupt(due_store *store)
{
    due__link_interrupt(redis_of(store)->link);
}

static void verb_stats(due_store *store, struct due_store_stats *stats)
{
    struct due__redis *s = redis_of(store);

    pthread_mutex_lock(&s->lock);
    *stats = s->shown;
    pthread_mutex_unlock(&s->lock);
}

static void verb_free(due_store *store)
{
    struct due__redis *s = redis_of(store);

    due__flight_end(s);
    due__redis_load_forget(s);
    due__redis_kept_forget(s);
    due__redis_topics_free(s);
    due__share_free(s);
    due__link_free(s->link);
    pthread_mutex_destroy(&s->lock);
    free(s->order);
    due__scratch_free(&s->scratch);
    free(s);
}

static const struct due_store_verbs verbs = { .size = sizeof(struct due_store_verbs),
                                              .open = verb_open,
                                              .ready = verb_ready,
                                              .commit = verb_commit,
                                              .prepare = verb_prepare,
                                              .send = verb_send,
                                              .load = verb_load,
                                              .find = verb_find,
                                              .keys = verb_keys,
                                              .renew = verb_renew,
                                              .close = verb_close,
                                              .interrupt = verb_interrupt,
                                              .stats = verb_stats,
                                              .free = verb_free,
                                              .shared = &due__share_verbs,
                                              .change_size = sizeof(due_change),
                                              .topics = verb_topics };

/* ---- The object ------------------------------------------------------------------------------ */

static int refuse(due_error *error, const char *text)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s", text);
        error->hint[0] = '\0';
    }
    return DUE_EINVAL;
}

static bool is_time(int64_t ns)
{
    return ns >= 0 && ns <= TIME_MAX;
}

static bool is_printable(const char *text)
{
    size_t n = 0;

    for (; text[n] != '\0'; n++)
        if (text[n] <= ' ' || text[n] > '~' || n == 128)
            return false;
    return n > 0;
}

static int check(const due_redis_options *o, due_error *error)
{
    if (o->prefix != NULL && !due__is_name(o->prefix, 32))
        return refuse(error, "prefix: 1 to 32 of A-Z a-z 0-9 . _ -");
    if (o->client_name != NULL && !is_printable(o->client_name))
        return refuse(error, "client_name: printable, without spaces, at most 128 bytes");
    if (!is_time(o->connect_ns) || !is_time(o->answer_ns) || !is_time(o->spin_ns) ||
        !is_time(o->backoff_min_ns) || !is_time(o->backoff_max_ns) || !is_time(o->lease_ns) ||
        !is_time(o->wait_replicas_ns))
        return refuse(error, "a time is negative, or longer than a year");
    if (o->lease_ns != 0 && o->lease_ns < LEASE_MIN)
        return refuse(error, "lease_ns: 20 ms at least");
    if (o->require > DUE_DURABLE_ALWAYS || o->assume > DUE_DURABLE_ALWAYS)
        return refuse(error, "require or assume: no such durability");
    if (o->wait_replicas < 0 || o->batch_changes > CHANGES_MAX)
        return refuse(error, "wait_replicas is negative, or batch_changes over 16,384");
    for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
        if (o->reserved[i] != 0)
            return refuse(error, "reserved fields must be zero");
    return 0;
}

static int64_t or_default(int64_t ns, int64_t otherwise)
{
    return ns != 0 ? ns : otherwise;
}

static void fill_in(struct due__redis *s, const due_redis_options *o)
{
    due_redis_options *set = &s->set;

    *set = *o;
    snprintf(s->prefix, sizeof s->prefix, "%s", o->prefix != NULL ? o->prefix : "due");
    set->prefix = s->prefix;
    set->connect_ns = or_default(o->connect_ns, DUE_S(5));
    set->answer_ns = or_default(o->answer_ns, DUE_S(5));
    set->backoff_min_ns = or_default(o->backoff_min_ns, DUE_MS(50));
    set->backoff_max_ns = or_default(o->backoff_max_ns, DUE_S(5));
    set->lease_ns = or_default(o->lease_ns, DUE_S(10));
    set->wait_replicas_ns = or_default(o->wait_replicas_ns, DUE_S(1));
    if (set->wait_replicas > 0)
        set->answer_ns += set->wait_replicas_ns;
    set->batch_bytes = o->batch_bytes != 0 ? o->batch_bytes : (size_t)16 << 20;
}

static struct due__redis *make(struct due__address *address, const due_redis_options *o)
{
    struct store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return NULL;
    struct due__redis *s = &store->redis;
    s->base.verbs = &verbs;
    s->load = &store->load;
    s->kept = &store->kept;
    s->share = &store->share;
    fill_in(s, o);
    due__address_show(address, s->where, sizeof s->where);
    struct due__link_limits limits = { .connect_ns = s->set.connect_ns,
                                       .answer_ns = s->set.answer_ns,
                                       .spin_ns = s->set.spin_ns,
                                       .backoff_min_ns = s->set.backoff_min_ns,
                                       .backoff_max_ns = s->set.backoff_max_ns,
                                       .reply_elements = ELEMENTS_MAX,
                                       .reply_bytes = DUE__REDIS_BULK + ((size_t)1 << 20) };
    const char *name = o->client_name != NULL ? o->client_name : "due";
    s->link = due__link_new(address, &limits, name);
    if (s->link == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
        due__link_free(s->link);
        free(s);
        return NULL;
    }
    s->set.client_name = NULL;
    return s;
}

int due_redis_open(due_store **store, const char *url, const due_redis_options *options,
                   due_error *error)
{
    due_redis_options given = { DUE_REDIS_OPTIONS_INIT };
    struct due__address address = { 0 };
    const due_redis_options *o = &given;
    int rc = options != NULL ? due__sized_read(&given, sizeof given, options) : 0;

    *store = NULL;
    if (rc == DUE_EINVAL)
        (void)refuse(error, "options were not begun with DUE_REDIS_OPTIONS_INIT");
    else if (rc != 0)
        (void)refuse(error, "an option is set that this version does not know");
    else
        rc = check(o, error);
    if (rc == 0)
        rc = due__address_parse(&address, url, error);
    if (rc != 0)
        return rc;
    struct due__redis *s = make(&address, o);
    due__address_wipe(&address); /* nothing is left in it if the link took it */
    if (s == NULL) {
        (void)refuse(error, "no memory, or no descriptor");
        return DUE_ENOMEM;
    }
    *store = &s->base;
    return 0;
}

void due_redis_free(due_store *store)
{
    if (store != NULL)
        store->verbs->free(store);
}
