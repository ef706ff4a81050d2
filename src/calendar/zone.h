/* zone.h - what the clocks of a time zone show. */
#ifndef DUE__ZONE_H
#define DUE__ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A stretch of time in which the clocks are not changed; all in seconds since 1970. */
struct due__zone_span {
    int64_t from, until; /* INT64_MIN, INT64_MAX: no beginning, no end */
    int64_t east;        /* what they are ahead of UTC */
};

/* A day of each year on which they are changed. */
struct due__zone_change {
    char kind; /* 'M', 'J' or 'N', as in the rules of POSIX: Mm.w.d, Jn, n */
    int month, week, day;
    int64_t time_s; /* of that day's clock */
};

/* A rule for all years. */
struct due__zone_rule {
    int64_t east;                         /* in winter */
    bool summer;                          /* is there any: */
    int64_t summer_east;                  /* */
    struct due__zone_change begins, ends; /* */
};

/* Read a rule such as "CET-1CEST,M3.5.0,M10.5.0/3".  False: it is none. */
bool due__zone_rule_read(struct due__zone_rule *rule, const char *text, size_t len);

/* The span that @at lies in. */
struct due__zone_span due__zone_rule_at(const struct due__zone_rule *rule, int64_t at);

/* A zone that is open, for one thread. */
struct due__zone {
    int fd;           /* -1: none; it has its rule alone */
    int width;        /* bytes of a time in the file, */
    uint32_t changes; /* how many there are, */
    uint32_t kinds;   /* and how many kinds of clock */
    off_t table;      /* where they begin */
    bool ruled;       /* behind the last change */
    struct due__zone_rule rule;
    struct due__zone_span span; /* the last answer */
};

/* Open a zone by its name; NULL is UTC.  0; DUE_EINVAL: there is none; DUE_ECORRUPT; DUE_ESYS. */
int due__zone_open(struct due__zone *zone, const char *name);

/* The same for an open file, which belongs to the zone if the answer is 0. */
int due__zone_open_file(struct due__zone *zone, int fd);
void due__zone_close(struct due__zone *zone);

/* The span that @at lies in: 0, DUE_ECORRUPT, DUE_ESYS. */
int due__zone_at(struct due__zone *zone, int64_t at, struct due__zone_span *span);

#endif
