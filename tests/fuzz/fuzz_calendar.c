/* fuzz_calendar.c - any bytes as a cron expression and a rule, up to zero bytes, and behind them as
 * the file of a time zone: refused, or answers that fit together. */
#define _GNU_SOURCE
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calendar/cron.h"
#include "calendar/zone.h"
#include "due/cron.h"

/* Spans follow each other, and each has its time. */
static void walk(struct due__zone *z)
{
    int64_t at = 0;

    for (int i = 0; i < 50; i++) {
        struct due__zone_span s;
        int rc = due__zone_at(z, at, &s);

        if (rc != 0) {
            assert(rc == DUE_ECORRUPT);
            return;
        }
        assert(s.from <= at && at < s.until && s.east < 26 * 3600 && s.east > -26 * 3600);
        if (s.until == INT64_MAX)
            return;
        at = s.until;
    }
}

static void take_file(const uint8_t *data, size_t size)
{
    struct due__zone z;
    int fd = memfd_create("zone", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    if (due__zone_open_file(&z, fd) == 0) {
        walk(&z);
        due__zone_close(&z);
    } else {
        close(fd);
    }
}

/* A string of its own, up to a zero byte or the end. */
static char *take_string(const uint8_t **data, size_t *size)
{
    size_t len = strnlen((const char *)*data, *size);
    char *text = malloc(len + 1);

    if (text == NULL)
        abort();
    memcpy(text, *data, len);
    text[len] = '\0';
    *data += len < *size ? len + 1 : len;
    *size -= len < *size ? len + 1 : len;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t none[1];
    size_t at = 0;
    int64_t next = -1;

    if (size == 0)
        data = none;
    char *expression = take_string(&data, &size);
    char *zone = take_string(&data, &size);
    const char *wrong = due_cron_error(expression, zone, &at);
    int rc = due_cron_next(expression, zone, 1774656000000000001, &next);

    assert(at <= strlen(expression));
    if (wrong == NULL)
        assert(rc == 0 ? next > 1774656000000000001 : rc == DUE_ELIMIT || rc == DUE_ECORRUPT);
    else
        assert(rc < 0 && next == -1);
    take_file(data, size);
    free(expression);
    free(zone);
    return 0;
}
