/* disk_vfs.h - a disk that fails and that loses its power, between SQLite and the system.
 *
 * It is the default VFS from disk_begin() on, and passes everything on.  It counts the writes,
 * syncs, truncations and locks, and can make one of them fail, or all that need more room; and it
 * writes down the first three, so that disk_cut() can make a folder as a disk may be found after
 * a loss of power: of what was not synced then each sector of a write is there or not, whatever
 * the order.
 *
 * Threads  one
 */
#ifndef DISK_VFS_H
#define DISK_VFS_H

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/crew.h"

#define DISK_FILES  4   /* with their suffixes, */
#define DISK_LOG    1   /* of which this is the log */
#define DISK_SECTOR 512 /* bytes that are there as a whole, or not */

enum disk_kind { DISK_WRITE, DISK_SYNC, DISK_TRUNCATE, DISK_DELETE, DISK_LOCK, DISK_KINDS };

struct disk_step {
    enum disk_kind kind;
    int file;
    sqlite3_int64 at; /* TRUNCATE: the new length */
    int len;
    unsigned char *bytes;
};

struct disk {
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    size_t prefix; /* of the database's path, before the suffix */
    struct disk_step *steps;
    size_t n, room;
    bool records;
    unsigned long calls; /* that can fail, so far */
    unsigned long fails; /* this one does; 0: none */
    int code;            /* with this */
    bool failed;
    bool next[DISK_KINDS]; /* the next one of these fails, once */
    bool full;             /* the database's file cannot grow, */
    sqlite3_int64 log_end; /* nor the log beyond what was written last before that */
};

static struct disk disk;

static const char *const disk_suffixes[DISK_FILES] = { "", "-wal", "-journal", "-shm" };

struct disk_file {
    sqlite3_file base;
    int number; /* in disk_suffixes; -1: another */
    sqlite3_file *real;
};

static struct disk_file *disk_file_of(sqlite3_file *file)
{
    return (struct disk_file *)(void *)file;
}

static sqlite3_file *disk_real(sqlite3_file *file)
{
    return disk_file_of(file)->real;
}

/* Whether this call fails. */
static bool disk_fails(enum disk_kind kind)
{
    bool fails = disk.next[kind];

    disk.next[kind] = false;
    if (++disk.calls != disk.fails)
        return fails;
    disk.failed = true;
    return true;
}

/* Is there no room for what ends there? */
static bool disk_lacks(sqlite3_file *file, sqlite3_int64 end)
{
    bool log = disk_file_of(file)->number == DISK_LOG;
    sqlite3_int64 size = 0;

    if (log && !disk.full)
        disk.log_end = end;
    if (!disk.full || disk_real(file)->pMethods->xFileSize(disk_real(file), &size) != SQLITE_OK)
        return false;
    return end > (log ? disk.log_end : size);
}

static void disk_note(struct disk_step step)
{
    if (!disk.records || step.file < 0)
        return;
    if (disk.n == disk.room) {
        disk.room = disk.room == 0 ? 256 : 2 * disk.room;
        disk.steps = realloc(disk.steps, disk.room * sizeof *disk.steps);
        CREW_CHECK(disk.steps != NULL, "");
    }
    if (step.kind == DISK_WRITE) {
        const unsigned char *bytes = step.bytes;
        step.bytes = malloc((size_t)step.len);
        CREW_CHECK(step.bytes != NULL, "");
        memcpy(step.bytes, bytes, (size_t)step.len);
    }
    disk.steps[disk.n++] = step;
}

/* ---- A file ---- */

static int disk_close(sqlite3_file *file)
{
    return disk_real(file)->pMethods->xClose(disk_real(file));
}

static int disk_read(sqlite3_file *file, void *to, int len, sqlite3_int64 at)
{
    return disk_real(file)->pMethods->xRead(disk_real(file), to, len, at);
}

static int disk_write(sqlite3_file *file, const void *from, int len, sqlite3_int64 at)
{
    if (disk_lacks(file, at + len))
        return SQLITE_FULL;
    if (disk_fails(DISK_WRITE))
        return disk.code;
    disk_note((struct disk_step){ .kind = DISK_WRITE,
                                  .file = disk_file_of(file)->number,
                                  .at = at,
                                  .len = len,
                                  .bytes = (unsigned char *)(uintptr_t)from });
    return disk_real(file)->pMethods->xWrite(disk_real(file), from, len, at);
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (disk_fails(DISK_TRUNCATE))
        return disk.code;
    disk_note((struct disk_step){
        .kind = DISK_TRUNCATE, .file = disk_file_of(file)->number, .at = size });
    return disk_real(file)->pMethods->xTruncate(disk_real(file), size);
}

static int disk_sync(sqlite3_file *file, int flags)
{
    if (disk_fails(DISK_SYNC))
        return disk.code == SQLITE_FULL ? SQLITE_FULL : SQLITE_IOERR_FSYNC;
    disk_note((struct disk_step){ .kind = DISK_SYNC, .file = disk_file_of(file)->number });
    return disk_real(file)->pMethods->xSync(disk_real(file), flags);
}

static int disk_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return disk_real(file)->pMethods->xFileSize(disk_real(file), size);
}

static int disk_lock(sqlite3_file *file, int level)
{
    if (disk_fails(DISK_LOCK))
        return SQLITE_IOERR_LOCK;
    return disk_real(file)->pMethods->xLock(disk_real(file), level);
}

static int disk_unlock(sqlite3_file *file, int level)
{
    return disk_real(file)->pMethods->xUnlock(disk_real(file), level);
}

static int disk_reserved(sqlite3_file *file, int *out)
{
    return disk_real(file)->pMethods->xCheckReservedLock(disk_real(file), out);
}

static int disk_control(sqlite3_file *file, int op, void *arg)
{
    if (op == SQLITE_FCNTL_SIZE_HINT && disk_lacks(file, *(sqlite3_int64 *)arg))
        return SQLITE_IOERR_WRITE;
    return disk_real(file)->pMethods->xFileControl(disk_real(file), op, arg);
}

static int disk_sector(sqlite3_file *file)
{
    return disk_real(file)->pMethods->xSectorSize(disk_real(file));
}

/* A disk that promises nothing. */
static int disk_character(sqlite3_file *file)
{
    (void)file;
    return 0;
}

static int disk_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **at)
{
    return disk_real(file)->pMethods->xShmMap(disk_real(file), page, size, extend, at);
}

static int disk_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    if ((flags & SQLITE_SHM_LOCK) != 0 && disk_fails(DISK_LOCK))
        return SQLITE_IOERR_SHMLOCK;
    return disk_real(file)->pMethods->xShmLock(disk_real(file), offset, n, flags);
}

static void disk_shm_barrier(sqlite3_file *file)
{
    disk_real(file)->pMethods->xShmBarrier(disk_real(file));
}

static int disk_shm_unmap(sqlite3_file *file, int gone)
{
    return disk_real(file)->pMethods->xShmUnmap(disk_real(file), gone);
}

static const sqlite3_io_methods disk_methods = { .iVersion = 2,
                                                 .xClose = disk_close,
                                                 .xRead = disk_read,
                                                 .xWrite = disk_write,
                                                 .xTruncate = disk_truncate,
                                                 .xSync = disk_sync,
                                                 .xFileSize = disk_size,
                                                 .xLock = disk_lock,
                                                 .xUnlock = disk_unlock,
                                                 .xCheckReservedLock = disk_reserved,
                                                 .xFileControl = disk_control,
                                                 .xSectorSize = disk_sector,
                                                 .xDeviceCharacteristics = disk_character,
                                                 .xShmMap = disk_shm_map,
                                                 .xShmLock = disk_shm_lock,
                                                 .xShmBarrier = disk_shm_barrier,
                                                 .xShmUnmap = disk_shm_unmap };

/* ---- The file system ---- */

static int disk_number(const char *path)
{
    for (int i = 0; path != NULL && i < DISK_FILES; i++)
        if (strlen(path) >= disk.prefix && strcmp(path + disk.prefix, disk_suffixes[i]) == 0)
            return i;
    return -1;
}

static int disk_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *file, int flags,
                     int *out)
{
    struct disk_file *f = disk_file_of(file);

    (void)vfs;
    f->base.pMethods = NULL;
    f->real = (sqlite3_file *)(void *)(f + 1);
    f->number = disk_number(path);
    int rc = disk.real->xOpen(disk.real, path, f->real, flags, out);
    if (rc == SQLITE_OK)
        f->base.pMethods = &disk_methods;
    return rc;
}

static int disk_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    (void)vfs;
    disk_note((struct disk_step){ .kind = DISK_DELETE, .file = disk_number(path) });
    return disk.real->xDelete(disk.real, path, sync);
}

/* @path: of the database. */
static inline void disk_begin(const char *path)
{
    disk = (struct disk){ .real = sqlite3_vfs_find("unix"),
                          .prefix = strlen(path),
                          .code = SQLITE_IOERR_WRITE };
    CREW_CHECK(disk.real != NULL, "");
    disk.vfs = *disk.real;
    disk.vfs.zName = "disk";
    disk.vfs.pNext = NULL;
    disk.vfs.szOsFile = (int)sizeof(struct disk_file) + disk.real->szOsFile;
    disk.vfs.xOpen = disk_open;
    disk.vfs.xDelete = disk_delete;
    CREW_CHECK(sqlite3_vfs_register(&disk.vfs, 1) == SQLITE_OK, "");
}

static inline void disk_forget(void)
{
    for (size_t i = 0; i < disk.n; i++)
        free(disk.steps[i].bytes);
    free(disk.steps);
    disk.steps = NULL;
    disk.n = disk.room = 0;
}

static inline void disk_end(void)
{
    sqlite3_vfs_unregister(&disk.vfs);
    disk_forget();
}

/* ---- A loss of power ---- */

/* Is what step @i did on the disk for sure after @n steps? */
static inline bool disk_is_safe(size_t i, size_t n)
{
    for (size_t k = i + 1; k < n; k++)
        if (disk.steps[k].file == disk.steps[i].file && disk.steps[k].kind == DISK_SYNC)
            return true;
    return false;
}

static inline void disk_replay_write(int fd, const struct disk_step *s, bool safe, uint64_t *random)
{
    for (int from = 0; from < s->len;) {
        int to = (int)((s->at + from) / DISK_SECTOR * DISK_SECTOR + DISK_SECTOR - s->at);
        int len = (to < s->len ? to : s->len) - from;

        if (safe || crew_below(random, 2) == 0)
            CREW_CHECK(pwrite(fd, s->bytes + from, (size_t)len, s->at + from) == len, "");
        from += len;
    }
}

/* Make the file at @path, and those beside it, as the disk may have them after the first @n steps.
 * Deletions are done: SQLite's next opening makes nothing of a log that belongs to no database. */
static inline void disk_cut(const char *path, size_t n, uint64_t *random)
{
    char name[160];
    int fd[DISK_FILES];

    for (int i = 0; i < DISK_FILES; i++) {
        snprintf(name, sizeof name, "%s%s", path, disk_suffixes[i]);
        (void)unlink(name);
        fd[i] = -1;
    }
    for (size_t i = 0; i < n; i++) {
        const struct disk_step *s = &disk.steps[i];
        bool safe = disk_is_safe(i, n);

        snprintf(name, sizeof name, "%s%s", path, disk_suffixes[s->file]);
        if (fd[s->file] < 0)
            fd[s->file] = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CREW_CHECK(fd[s->file] >= 0, "");
        if (s->kind == DISK_WRITE) {
            disk_replay_write(fd[s->file], s, safe, random);
        } else if (s->kind == DISK_TRUNCATE && (safe || crew_below(random, 2) == 0)) {
            CREW_CHECK(ftruncate(fd[s->file], s->at) == 0, "");
        } else if (s->kind == DISK_DELETE) {
            close(fd[s->file]);
            fd[s->file] = -1;
            (void)unlink(name);
        }
    }
    for (int i = 0; i < DISK_FILES; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

#endif
