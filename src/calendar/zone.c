/* zone.c - time zones of the system's database: files in the form TZif (RFC 8536).
 *
 * A file has the instants at which the clocks were or will be changed, in order, and at its end a
 * rule for what comes later.  It stays open while it is asked, and what is needed of it is read:
 * no memory is allocated, and little is on the stack.  What stands in it is not believed: counts
 * are compared with its size, and what makes no sense is DUE_ECORRUPT.
 *
 *     header   "TZif", version, 15 bytes, six counts of 4 bytes
 *     body     times, a byte each for the kind of clock, kinds (6 bytes: offset, summer, name), ...
 *
 * From version 2 on a second header and body follow, with times of 8 bytes, and the rule between
 * two line feeds.  Files that count leap seconds are refused: the system's time does not.
 */
#include "calendar/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "due/base.h"

enum { HEADER = 44, KIND = 6, RULE_MAX = 128, NAME_MAX_BYTES = 255 };
static const int64_t EAST_MAX = 26 * 3600;           /* offsets are no more than that */
static const uint32_t COUNT_MAX = UINT32_C(1) << 20; /* so that sizes do not overflow */

static const char *const databases[] = { "/usr/share/zoneinfo", "/etc/zoneinfo" };

/* The counts of a header, in the order in which they stand there. */
struct tzif_counts {
    uint32_t of_utc, of_standard, leaps, times, kinds, letters;
};

/* ---- Bytes ---- */

static uint64_t number_of(const unsigned char *bytes, size_t n)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Read @n bytes: 0, or DUE_ECORRUPT: the file ends before that. */
static int read_at(int fd, off_t at, void *bytes, size_t n)
{
    size_t done = 0;

    while (done < n) {
        ssize_t got = pread(fd, (char *)bytes + done, n - done, at + (off_t)done);

        if (got == 0)
            return DUE_ECORRUPT;
        if (got < 0 && errno != EINTR)
            return DUE_ESYS;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

/* ---- Opening ---- */

static int read_header(int fd, off_t at, struct tzif_counts *counts, int *version)
{
    unsigned char h[HEADER];
    int rc = read_at(fd, at, h, sizeof h);

    if (rc != 0)
        return rc;
    if (memcmp(h, "TZif", 4) != 0)
        return DUE_ECORRUPT;
    *version = h[4];
    uint32_t *const wanted[] = { &counts->of_utc, &counts->of_standard, &counts->leaps,
                                 &counts->times,  &counts->kinds,       &counts->letters };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        *wanted[i] = (uint32_t)number_of(h + 20 + 4 * i, 4);
        if (*wanted[i] > COUNT_MAX)
            return DUE_ECORRUPT;
    }
    return counts->kinds == 0 || counts->kinds > 256 ? DUE_ECORRUPT : 0;
}

static off_t body_size(const struct tzif_counts *c, int width)
{
    return (off_t)c->times * (width + 1) + (off_t)c->kinds * KIND + (off_t)c->letters +
           (off_t)c->leaps * (width + 4) + (off_t)c->of_standard + (off_t)c->of_utc;
}

/* The rule behind the second body; an empty one says nothing. */
static int read_rule(struct due__zone *z, off_t at)
{
    char text[RULE_MAX];
    ssize_t n;

    do
        n = pread(z->fd, text, sizeof text, at);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return DUE_ESYS;
    if (n < 2 || text[0] != '\n')
        return DUE_ECORRUPT;
    const char *end = memchr(text + 1, '\n', (size_t)n - 1);
    if (end == NULL)
        return DUE_ECORRUPT;
    size_t len = (size_t)(end - text) - 1;
    z->ruled = len > 0;
    return len == 0 || due__zone_rule_read(&z->rule, text + 1, len) ? 0 : DUE_ECORRUPT;
}

static int read_file(struct due__zone *z)
{
    struct tzif_counts counts;
    int version;
    off_t at = 0;
    int rc = read_header(z->fd, 0, &counts, &version);

    if (rc != 0)
        return rc;
    z->width = version == 0 ? 4 : 8;
    if (version != 0) {
        at = HEADER + body_size(&counts, 4);
        rc = read_header(z->fd, at, &counts, &version);
        if (rc != 0)
            return rc;
    }
    if (counts.leaps > 0)
        return DUE_ECORRUPT;
    z->changes = counts.times;
    z->kinds = counts.kinds;
    z->table = at + HEADER;
    return z->width == 8 ? read_rule(z, z->table + body_size(&counts, 8)) : 0;
}

static void forget(struct due__zone *z)
{
    memset(z, 0, sizeof *z);
    z->fd = -1;
    z->span.from = INT64_MAX; /* no answer yet */
    z->span.until = INT64_MIN;
}

int due__zone_open_file(struct due__zone *z, int fd)
{
    struct stat about;

    forget(z);
    if (fstat(fd, &about) != 0)
        return DUE_ESYS;
    if (!S_ISREG(about.st_mode))
        return DUE_ECORRUPT;
    z->fd = fd;
    int rc = read_file(z);
    if (rc != 0)
        z->fd = -1;
    return rc;
}

/* Can this be the name of a file of the database?  It leads nowhere else. */
static bool is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool fine = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '+' || c == '-' || (c == '/' && i > 0);

        if (!fine)
            return false;
    }
    return len > 0;
}

/* The descriptor; -1: no such file; or a DUE_E* code, which are all less. */
static int open_path(const char *path)
{
    int fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0)
        return fd;
    return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? -1 : DUE_ESYS;
}

static int open_name(const char *name)
{
    char path[64 + NAME_MAX_BYTES];
    int fd = -1;

    if (strcmp(name, "localtime") == 0)
        return open_path("/etc/localtime");
    for (size_t i = 0; fd == -1 && i < sizeof databases / sizeof databases[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", databases[i], name);
        fd = open_path(path);
    }
    return fd;
}

int due__zone_open(struct due__zone *z, const char *name)
{
    size_t len = name == NULL ? 0 : strlen(name);
    int fd = -1;

    forget(z);
    if (name == NULL || strcmp(name, "UTC") == 0)
        return 0;
    if (len > NAME_MAX_BYTES)
        return DUE_EINVAL;
    if (is_name(name, len))
        fd = open_name(name);
    if (fd < -1)
        return fd;
    if (fd == -1) {
        z->ruled = due__zone_rule_read(&z->rule, name, len);
        return z->ruled ? 0 : DUE_EINVAL;
    }
    int rc = due__zone_open_file(z, fd);
    if (rc != 0)
        close(fd);
    return rc;
}

void due__zone_close(struct due__zone *z)
{
    if (z->fd >= 0)
        close(z->fd);
    z->fd = -1;
}

/* ---- Asking ---- */

static int change_time(const struct due__zone *z, uint32_t i, int64_t *at)
{
    unsigned char bytes[8];
    int rc = read_at(z->fd, z->table + (off_t)i * z->width, bytes, (size_t)z->width);

    if (rc == 0 && z->width == 4)
        *at = (int32_t)(uint32_t)number_of(bytes, 4);
    else if (rc == 0)
        *at = (int64_t)number_of(bytes, 8);
    return rc;
}

/* How the clocks go behind the change before @i; before the first: by the first kind. */
static int kind_east(const struct due__zone *z, uint32_t i, int64_t *east)
{
    off_t kinds = z->table + (off_t)z->changes * (z->width + 1);
    unsigned char number = 0;
    unsigned char bytes[4];
    int rc = 0;

    if (i > 0)
        rc = read_at(z->fd, z->table + (off_t)z->changes * z->width + (off_t)i - 1, &number, 1);
    if (rc == 0 && number >= z->kinds)
        return DUE_ECORRUPT;
    if (rc == 0)
        rc = read_at(z->fd, kinds + (off_t)number * KIND, bytes, sizeof bytes);
    if (rc != 0)
        return rc;
    *east = (int32_t)(uint32_t)number_of(bytes, 4);
    return *east > EAST_MAX || *east < -EAST_MAX ? DUE_ECORRUPT : 0;
}

/* How many changes there were up to @at. */
static int changes_until(const struct due__zone *z, int64_t at, uint32_t *count)
{
    uint32_t low = 0;
    uint32_t high = z->changes;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int64_t time;
        int rc = change_time(z, middle, &time);

        if (rc != 0)
            return rc;
        if (time <= at)
            low = middle + 1;
        else
            high = middle;
    }
    *count = low;
    return 0;
}

static int span_of_file(const struct due__zone *z, int64_t at, struct due__zone_span *s)
{
    uint32_t count;
    int rc = changes_until(z, at, &count);

    *s = (struct due__zone_span){ INT64_MIN, INT64_MAX, 0 };
    if (rc == 0 && count > 0)
        rc = change_time(z, count - 1, &s->from);
    if (rc == 0 && count < z->changes)
        rc = change_time(z, count, &s->until);
    if (rc == 0 && count == z->changes && z->ruled) { /* behind the last */
        int64_t last = s->from;

        *s = due__zone_rule_at(&z->rule, at);
        if (s->from < last)
            s->from = last;
        return 0;
    }
    if (rc == 0)
        rc = kind_east(z, count, &s->east);
    return rc == 0 && (s->from > at || s->until <= at) ? DUE_ECORRUPT : rc;
}

int due__zone_at(struct due__zone *z, int64_t at, struct due__zone_span *span)
{
    int rc = 0;

    if (z->span.from > at || z->span.until <= at) {
        if (z->fd >= 0)
            rc = span_of_file(z, at, &z->span);
        else
            z->span = due__zone_rule_at(&z->rule, at); /* UTC is the rule that is all zeros */
    }
    if (rc == 0)
        *span = z->span;
    else
        z->span = (struct due__zone_span){ INT64_MAX, INT64_MIN, 0 };
    return rc;
}
