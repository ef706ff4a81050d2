/* thread_sqlite_lock.c - threads of one process lock files, each its own, and all of them one more:
 * that is locked by one of them at a time, and who does not get it is told whose it is.
 */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "lab/sqlite/sqlite_place.h"
#include "sqlite/file_lock.h"

enum { THREADS = 3 };

struct world {
    struct sqlite_place place;
    int64_t end_ns;
    atomic_int inside;
    atomic_ullong had, refused;
};

struct party {
    struct crew_thread thread;
    struct world *w;
    int number;
};

static void take_own(const char *path)
{
    struct due__file_lock *lock;
    char holder[DUE__HOLDER];

    int rc = due__file_lock_take(&lock, path, holder);
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(due__file_lock_is_at(lock, path), "");
    due__file_lock_undo(lock, path);
}

static void take_common(struct world *w, const char *path)
{
    struct due__file_lock *lock;
    char holder[DUE__HOLDER];

    int rc = due__file_lock_take(&lock, path, holder);
    if (rc == DUE_EBUSY) {
        CREW_CHECK(holder[0] == '\0' || strstr(holder, ", this process") != NULL, ": %s", holder);
        atomic_fetch_add(&w->refused, 1);
        return;
    }
    CREW_CHECK(rc == 0, ": %s", due_error_name(rc));
    CREW_CHECK(atomic_fetch_add(&w->inside, 1) == 0, ": two have it");
    atomic_fetch_sub(&w->inside, 1);
    atomic_fetch_add(&w->had, 1);
    due__file_lock_drop(lock);
}

static int lock_files(void *arg)
{
    struct party *p = arg;
    char own[128];

    snprintf(own, sizeof own, "%s-%d", p->w->place.path, p->number);
    while (crew_now_ns() < p->w->end_ns) {
        take_own(own);
        take_common(p->w, p->w->place.path);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct crew_options o = crew_options(argc, argv, 0.2);
    static struct world w;
    struct party parties[THREADS];

    sqlite_place_open(&w.place);
    w.end_ns = crew_now_ns() + o.ns;
    for (int i = 0; i < THREADS; i++) {
        parties[i] = (struct party){ .w = &w, .number = i };
        crew_go(&parties[i].thread, lock_files, &parties[i]);
    }
    for (int i = 0; i < THREADS; i++)
        crew_join(&parties[i].thread);
    sqlite_place_close(&w.place);
    CREW_CHECK(atomic_load(&w.had) > 0, "");
    printf("thread_sqlite_lock: had %llu times, refused %llu\n",
           (unsigned long long)atomic_load(&w.had), (unsigned long long)atomic_load(&w.refused));
    return 0;
}
