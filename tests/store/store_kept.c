/* store_kept.c - files of every format that was ever written can be opened, and damaged ones too.
 *
 * store_kept FOLDER: opens format-1.db of the folder, which holds what sqlite_kept.h says.  Then
 * each page of it is overwritten in turn, by zeros, by ones, by noise, by another page, or in a
 * part: the store answers with an error or shows what is whole, and goes on to be used.
 *
 * store_kept --write FILE writes such a file: tests/store/kept/format-1.db was made so.
 */
#ifdef DUE_HAVE_SQLITE

#include <sys/stat.h>

#include "lab/sqlite/sqlite_kept.h"

#define PAGE 4096

struct kept {
    struct sqlite_desk desk;
    unsigned char *bytes; /* of the file */
    size_t len;
    unsigned shown, keys;
    bool damaged; /* then what is shown must be whole, else the same */
};

/* ---- Files ---- */

static void kept_read(struct kept *k, const char *path)
{
    struct stat file;
    FILE *from = fopen(path, "rb");

    CREW_CHECK(from != NULL && fstat(fileno(from), &file) == 0, ": %s", path);
    k->len = (size_t)file.st_size;
    k->bytes = malloc(k->len);
    CREW_CHECK(k->bytes != NULL && fread(k->bytes, 1, k->len, from) == k->len, ": %s", path);
    fclose(from);
}

/* Put them where the desk's file is. */
static void kept_place(struct kept *k, const unsigned char *bytes)
{
    sqlite_place_unlink(&k->desk.place, NULL);
    FILE *to = fopen(k->desk.place.path, "wb");
    CREW_CHECK(to != NULL && fwrite(bytes, 1, k->len, to) == k->len && fclose(to) == 0, "");
}

/* ---- What they hold ---- */

static int kept_visit(void *ctx, const due_record *record)
{
    struct kept *k = ctx;

    CREW_CHECK(k->damaged ? kept_is_whole(record) : kept_is_same(record), ": job %u",
               record->id.byte[13]);
    k->shown++;
    return 0;
}

static int kept_visit_key(void *ctx, const void *key, size_t len, due_id id, int64_t until_ns)
{
    struct kept *k = ctx;

    (void)key;
    (void)id;
    CREW_CHECK(len <= DUE_KEY_MAX, "");
    CREW_CHECK(k->damaged || until_ns == DUE_FOREVER, "");
    k->keys++;
    return 0;
}

static int kept_load(struct kept *k)
{
    const struct due_store_verbs *v = k->desk.store->verbs;
    int rc = 1;
    int pages = 0;

    k->shown = k->keys = 0;
    for (int rewind = 1; rc == 1; rewind = 0) {
        rc = v->load(k->desk.store, rewind, 20, kept_visit, k, crew_now_ns() + DUE_S(5));
        CREW_CHECK(++pages < 1000, ": a load without end");
    }
    int keys = rc < 0 ? rc : 1;
    for (int rewind = 1; keys == 1; rewind = 0) {
        keys = v->keys(k->desk.store, rewind, 2, kept_visit_key, k, crew_now_ns() + DUE_S(5));
        CREW_CHECK(++pages < 2000, ": keys without end");
    }
    return keys;
}

/* One of each change, and a look for a job. */
static void kept_use(struct kept *k)
{
    static struct kept_bytes bytes;
    const struct due_store_verbs *v = k->desk.store->verbs;
    int64_t held_ns;

    for (unsigned job = 0; job < KEPT_JOBS; job += 7) {
        due_change c = { .kind = (enum due_change_kind)(DUE_CHANGE_PUT + job % 4),
                         .record = kept_record(job, &bytes) };

        c.was_dead = c.record.cause != 0;
        c.was_ns = c.was_dead ? c.record.died_ns : c.record.until_ns;
        if (c.kind == DUE_CHANGE_BURY)
            c.record.cause = DUE_CAUSE_BURIED;
        (void)v->find(k->desk.store, c.record.id, kept_visit, k, crew_now_ns() + DUE_S(5));
        (void)sqlite_desk_commit(&k->desk, &c, DUE_S(5));
    }
    (void)v->renew(k->desk.store, &held_ns, crew_now_ns() + DUE_S(5));
}

/* Of each format that was ever written. */
static void kept_open(struct kept *k)
{
    unsigned there = 0;

    for (unsigned job = 0; job < KEPT_JOBS; job++)
        there += kept_is_there(job);
    kept_place(k, k->bytes);
    CREW_CHECK(sqlite_desk_open(&k->desk) == 0, ": %s", k->desk.error.text);
    CREW_CHECK(k->desk.info.jobs == there, ": %u jobs", (unsigned)k->desk.info.jobs);
    CREW_CHECK(kept_load(k) == 0 && k->shown == there, ": %u jobs shown", k->shown);
    CREW_CHECK(k->keys == 5, ": %u kept keys", k->keys);
    sqlite_desk_shut(&k->desk);
}

/* ---- Damage ---- */

enum damage { ZEROS, ONES, NOISE, ANOTHER, PART, BITS, DAMAGES };

static void kept_damage(struct kept *k, unsigned char *copy, size_t page, enum damage how,
                        uint64_t *random)
{
    unsigned char *at = copy + page * PAGE;

    memcpy(copy, k->bytes, k->len);
    if (how == ZEROS || how == ONES)
        memset(at, how == ZEROS ? 0 : 0xff, PAGE);
    else if (how == ANOTHER)
        memcpy(at, k->bytes + crew_below(random, k->len / PAGE) * PAGE, PAGE);
    for (size_t i = 0; i < PAGE; i++) {
        bool hit = how == NOISE || (how == PART && i / 64 == page % 64) ||
                   (how == BITS && crew_below(random, 500) == 0);
        if (hit)
            at[i] = (unsigned char)crew_random(random);
    }
}

/* Whatever of it is overwritten.  Answers how many openings went well. */
static unsigned kept_damages(struct kept *k, enum damage how)
{
    unsigned char *copy = malloc(k->len);
    uint64_t random = how + 1;
    unsigned opened = 0;

    CREW_CHECK(copy != NULL, "");
    k->damaged = true;
    for (size_t page = 0; page < k->len / PAGE; page++) {
        kept_damage(k, copy, page, how, &random);
        kept_place(k, copy);
        if (sqlite_desk_open(&k->desk) != 0)
            continue;
        opened++;
        (void)kept_load(k);
        kept_use(k);
        (void)kept_load(k);
        sqlite_desk_shut(&k->desk);
    }
    free(copy);
    return opened;
}

/* ---- The program ---- */

static int kept_write_file(const char *path)
{
    struct sqlite_desk desk;

    sqlite_desk_begin(&desk);
    CREW_CHECK(sqlite_desk_open(&desk) == 0, ": %s", desk.error.text);
    kept_write(&desk);
    sqlite_desk_shut(&desk);
    struct kept k = { .shown = 0 };
    kept_read(&k, desk.place.path);
    FILE *to = fopen(path, "wb");
    CREW_CHECK(to != NULL && fwrite(k.bytes, 1, k.len, to) == k.len && fclose(to) == 0, "");
    free(k.bytes);
    sqlite_desk_end(&desk);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const names[DAMAGES] = { "zeros",        "ones",   "noise",
                                                "another page", "a part", "some bytes" };
    static struct kept k;
    char path[512];

    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return kept_write_file(argv[2]);
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s/format-1.db", argv[1]);
    sqlite_desk_begin(&k.desk);
    kept_read(&k, path);
    kept_open(&k);
    k.desk.place.options.durability = DUE_DURABLE_NONE;
    for (int how = 0; how < DAMAGES; how++) {
        unsigned opened = kept_damages(&k, (enum damage)how);
        printf("kept: %u pages of %zu could be overwritten by %s and the file opened\n", opened,
               k.len / PAGE, names[how]);
    }
    free(k.bytes);
    sqlite_desk_end(&k.desk);
    return 0;
}

#else

int main(void)
{
    return 77;
}

#endif
