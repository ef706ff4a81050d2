/* store.c - the SQLite store: opening, and the table of its verbs. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/time.h"
#include "os/sized.h"
#include "sqlite/session.h"

#define CHANGES_MAX  16384
#define GATHER_MAX   ((size_t)1 << 19)
#define SCAN_MAX     ((size_t)1 << 14)
#define PREFETCH_MAX ((size_t)32 << 20)
#define CACHE_MAX    ((size_t)1 << 40)
#define RENEW_NS     DUE_S(10) /* only to look, and to give pages back */
#define SYNC_NS      DUE_S(1)  /* at level EVERYSEC */

static struct due__sqlite *sqlite_of(due_store *store)
{
    return (struct due__sqlite *)store;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int describe(struct due__sqlite *s, struct due_store_info *info)
{
    int64_t jobs = 0;
    int code = due__sqlite_number(s, DUE__SQL_COUNT, &jobs);
    int most = sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, -1);

    if (code != 0)
        return due__sqlite_error(s, code);
    *info =
        (struct due_store_info){ .writer = s->writer,
                                 .batch_changes = s->set.batch_changes,
                                 .batch_bytes = s->set.batch_bytes,
                                 .renew_ns =
                                     s->set.durability == DUE_DURABLE_EVERYSEC ? SYNC_NS : RENEW_NS,
                                 .durability = s->set.durability,
                                 .jobs = (uint64_t)jobs,
                                 .payload_max = (size_t)most - 2 * DUE__RECORD_FRONT,
                                 .held_ns = DUE_FOREVER };
    return 0;
}

static int open_store(due_store *store, const struct due_store_open *how,
                      struct due_store_info *info, due_error *error)
{
    struct due__sqlite *s = sqlite_of(store);
    int rc = DUE_EINVAL;

    s->how = *how;
    s->trouble[0] = s->hint[0] = '\0';
    s->until_ns = s->set.standby ? DUE_FOREVER : how->until_ns;
    if (!s->open && due__is_name(how->name, DUE__NAME_MAX)) {
        snprintf(s->name, sizeof s->name, "%s", how->name);
        s->how.name = s->name;
        s->pid = getpid();
        rc = due__sqlite_take_over(s, s->until_ns);
    }
    if (rc == 0) {
        rc = describe(s, info);
        if (rc != 0)
            due__sqlite_leave(s);
    }
    s->open = rc == 0;
    if (rc != 0 && error != NULL) {
        snprintf(error->text, sizeof error->text, "%s", s->trouble);
        snprintf(error->hint, sizeof error->hint, "%s", s->hint);
    }
    return rc == DUE_EAGAIN ? DUE_EBUSY : rc;
}

/* ---- The verbs ------------------------------------------------------------------------------- */

/* What stats() shows is copied at the end of each call: the rest belongs to the call under way. */
static int show(struct due__sqlite *s, int rc)
{
    pthread_mutex_lock(&s->counters);
    s->shown.durability = s->set.durability;
    s->shown.connected = s->db != NULL && !s->fenced && !s->away;
    pthread_mutex_unlock(&s->counters);
    due__sqlite_tell(s, rc);
    return rc;
}

static int verb_open(due_store *store, const struct due_store_open *how,
                     struct due_store_info *info, due_error *error)
{
    struct due__sqlite *s = sqlite_of(store);
    int rc = open_store(store, how, info, error);

    s->shown.connects += rc == 0; /* nobody else has the store yet */
    return show(s, rc);
}

/* Each call begins so.  A file that was lost is told once, by whichever call comes first. */
static int begin(struct due__sqlite *s, int64_t until_ns)
{
    s->until_ns = until_ns;
    int rc = due__sqlite_up(s);
    if (rc != 0 || !s->lost)
        return rc;
    s->lost = false;
    return DUE_ELOST;
}

static int verb_ready(due_store *store, int64_t until_ns)
{
    struct due__sqlite *s = sqlite_of(store);
    int rc = begin(s, until_ns);

    return show(s, rc == 0 ? due__sqlite_writable(s) : rc);
}

/* It cannot tell a loss: that is left to ready(). */
static int verb_commit(due_store *store, const due_change *changes, size_t n, uint64_t number,
                       int64_t until_ns)
{
    struct due__sqlite *s = sqlite_of(store);
    int64_t begun_ns = due__mono_ns();

    s->until_ns = until_ns;
    int rc = due__sqlite_up(s);
    if (rc == 0 && s->lost)
        rc = DUE_EAGAIN;
    if (rc == 0)
        rc = due__sqlite_commit(s, changes, n, number);
    if (rc == 0) {
        pthread_mutex_lock(&s->counters);
        s->shown.batches++;
        s->shown.round_trip_ns = due__mono_ns() - begun_ns;
        pthread_mutex_unlock(&s->counters);
    }
    return show(s, rc);
}

static int verb_load(due_store *store, int rewind, size_t max, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct due__sqlite *s = sqlite_of(store);
    int rc = begin(s, until_ns);

    if (rc == 0)
        rc = due__sqlite_load(s, rewind, max, visit, ctx);
    return show(s, rc);
}

static int verb_find(due_store *store, due_id id, due_store_visit *visit, void *ctx,
                     int64_t until_ns)
{
    struct due__sqlite *s = sqlite_of(store);
    int rc = begin(s, until_ns);

    if (rc == 0)
        rc = due__sqlite_fence(s);
    if (rc == 0)
        rc = due__sqlite_find(s, id, visit, ctx);
    return show(s, rc);
}

static int verb_keys(due_store *store, int rewind, size_t max, due_store_visit_key *visit,
                     void *ctx, int64_t until_ns)
{
    struct due__sqlite *s = sqlite_of(store);
    int rc = begin(s, until_ns);

    if (rc == 0)
        rc = due__sqlite_keys(s, rewind, max, visit, ctx);
    return show(s, rc);
}

static int verb_topics(due_store *store, due_store_visit_topic *visit, void *ctx, int64_t until_ns)
{
    struct due__sqlite *s = sqlite_of(store);
    int rc = begin(s, until_ns);

    if (rc == 0)
        rc = due__sqlite_settings(s, visit, ctx);
    return show(s, rc);
}

static int verb_renew(due_store *store, int64_t *held_ns, int64_t until_ns)
{
    struct due__sqlite *s = sqlite_of(store);
    int rc = begin(s, until_ns);

    if (rc == 0)
        rc = due__sqlite_renew(s, held_ns);
    return show(s, rc);
}

static int verb_close(due_store *store, int64_t until_ns)
{
    struct due__sqlite *s = sqlite_of(store);

    s->until_ns = until_ns;
    if (s->open && !s->closed)
        due__sqlite_leave(s);
    s->closed = s->open;
    return show(s, 0);
}

static void verb_interrupt(due_store *store)
{
    static const uint64_t once = 1;

    /* It fails only if it rings already, more often than can be counted. */
    if (write(sqlite_of(store)->bell, &once, sizeof once) != (ssize_t)sizeof once)
        return;
}

static void verb_stats(due_store *store, struct due_store_stats *stats)
{
    struct due__sqlite *s = sqlite_of(store);

    pthread_mutex_lock(&s->counters);
    *stats = s->shown;
    pthread_mutex_unlock(&s->counters);
}

/* In a child the connection and the lock are its parent's: they are left as they are. */
static void verb_free(due_store *store)
{
    struct due__sqlite *s = sqlite_of(store);

    if (s->pid == getpid() && s->lock != NULL)
        due__sqlite_leave(s);
    close(s->bell);
    due__sqlite_topics_forget(s);
    pthread_mutex_destroy(&s->counters);
    due__sqlite_cursor_end(&s->load);
    due__scratch_free(&s->scratch);
    free(s);
}

static const struct due_store_verbs verbs = { .size = sizeof(struct due_store_verbs),
                                              .open = verb_open,
                                              .ready = verb_ready,
                                              .commit = verb_commit,
                                              .load = verb_load,
                                              .find = verb_find,
                                              .keys = verb_keys,
                                              .renew = verb_renew,
                                              .close = verb_close,
                                              .interrupt = verb_interrupt,
                                              .stats = verb_stats,
                                              .free = verb_free,
                                              .change_size = sizeof(due_change),
                                              .topics = verb_topics };

/* ---- The object ------------------------------------------------------------------------------ */

static int refuse(due_error *error, int rc, const char *text)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s", text);
        error->hint[0] = '\0';
    }
    return rc;
}

static int check(const char *path, const due_sqlite_options *o, due_error *error)
{
    size_t len = strlen(path);

    if (len == 0 || path[len - 1] == '/')
        return refuse(error, DUE_EINVAL, "the path names no file");
    if (strcmp(path, ":memory:") == 0)
        return refuse(error, DUE_EINVAL,
                      "a queue without a store is in memory: leave the store out");
    if (o->durability > DUE_DURABLE_ALWAYS)
        return refuse(error, DUE_EINVAL, "durability: no such level");
    if (o->batch_changes > CHANGES_MAX || o->cache_bytes > CACHE_MAX)
        return refuse(error, DUE_EINVAL, "batch_changes over 16,384, or cache_bytes over 1 TiB");
    for (size_t i = 0; i < sizeof o->reserved / sizeof *o->reserved; i++)
        if (o->reserved[i] != 0)
            return refuse(error, DUE_EINVAL, "reserved fields must be zero");
    return 0;
}

/* The folder that a program works in may change later. */
static int absolute(char *to, size_t size, const char *path)
{
    size_t len = 0;

    if (path[0] != '/') {
        if (getcwd(to, size - 1) == NULL)
            return DUE_ELIMIT;
        len = strlen(to);
        to[len++] = '/';
    }
    if (len + strlen(path) >= size)
        return DUE_ELIMIT;
    memcpy(to + len, path, strlen(path) + 1);
    return 0;
}

static void fill_in(struct due_sqlite_options *set, const due_sqlite_options *o)
{
    *set = *o;
    if (o->durability == DUE_DURABLE_UNKNOWN)
        set->durability = DUE_DURABLE_ALWAYS;
    if (o->batch_changes == 0)
        set->batch_changes = 1024;
    if (o->batch_bytes == 0)
        set->batch_bytes = (size_t)16 << 20;
    if (o->cache_bytes == 0)
        set->cache_bytes = (size_t)32 << 20;
}

static struct due__sqlite *make(void)
{
    struct due__sqlite *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->base.verbs = &verbs;
    s->gather_max = GATHER_MAX;
    s->scan_max = SCAN_MAX;
    s->prefetch_max = PREFETCH_MAX;
    s->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->bell >= 0 && pthread_mutex_init(&s->counters, NULL) == 0)
        return s;
    if (s->bell >= 0)
        close(s->bell);
    free(s);
    return NULL;
}

int due_sqlite_open(due_store **store, const char *path, const due_sqlite_options *options,
                    due_error *error)
{
    due_sqlite_options given = { DUE_SQLITE_OPTIONS_INIT };
    int rc = options != NULL ? due__sized_read(&given, sizeof given, options) : 0;

    *store = NULL;
    if (rc == DUE_EINVAL)
        return refuse(error, rc, "options were not begun with DUE_SQLITE_OPTIONS_INIT");
    if (rc != 0)
        return refuse(error, rc, "an option is set that this version does not know");
    rc = check(path, &given, error);
    if (rc != 0)
        return rc;
    struct due__sqlite *s = make();
    if (s == NULL)
        return refuse(error, DUE_ENOMEM, "no memory, or no descriptor");
    fill_in(&s->set, &given);
    if (absolute(s->given, sizeof s->given, path) != 0) {
        verb_free(&s->base);
        return refuse(error, DUE_ELIMIT, "the path is too long");
    }
    *store = &s->base;
    return 0;
}

void due_sqlite_free(due_store *store)
{
    if (store != NULL)
        store->verbs->free(store);
}
