/* cron.h - cron expressions, read. */
#ifndef DUE__CRON_H
#define DUE__CRON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an expression names: a bit for each number. */
struct due__cron {
    uint64_t minutes;
    uint64_t hours;
    uint64_t days;
    uint64_t months;
    uint64_t weekdays; /* 0 to 6 */
    bool either;       /* a day fits that is in @days or in @weekdays; else it is in both */
};

enum { DUE__HOURS_ALL = 0xffffff };

/* Read @text: NULL; or what is wrong, and at which byte. */
const char *due__cron_read(struct due__cron *cron, const char *text, size_t *at);

#endif
