/* begin.c - what opening and joining a queue begin with: names, and a server that can be used. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/name.h"
#include "redis/owner/owner.h"

/* Random digits; where there are none, the time and our own address must do. */
static void random_digits(char *text, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        uint64_t word = 0;
        if (getrandom(&word, sizeof word, GRND_NONBLOCK) != (ssize_t)sizeof word)
            word = (uint64_t)due__clock_ns(CLOCK_REALTIME) * UINT64_C(0x9e3779b97f4a7c15) ^
                   (uint64_t)(uintptr_t)text;
        snprintf(text + 16 * i, 17, "%016" PRIx64, word);
    }
}

void due__redis_draw(struct due__redis *s)
{
    random_digits(s->nonce, 1);
    random_digits(s->incarnation, 2);
}

int due__redis_begin(struct due__redis *s, const struct due_store_open *how)
{
    s->how = *how;
    s->trouble[0] = s->hint[0] = '\0';
    if (s->open || !due__is_name(how->name, sizeof s->name - 1))
        return DUE_EINVAL;
    snprintf(s->name, sizeof s->name, "%s", how->name);
    s->how.name = s->name;
    due__redis_name_keys(s);
    due__redis_draw(s);
    return due__owner_write(s->owner);
}

int due__redis_reach(struct due__redis *s, int64_t until_ns)
{
    int rc = DUE_ESTORE;

    while (rc == DUE_ESTORE) {
        bool fresh = false;
        rc = due__redis_connect(s, &fresh, until_ns);
        if (rc == 0)
            rc = due__redis_probe(s, true, until_ns);
        if (rc == DUE_ESTORE && until_ns <= due__mono_ns())
            rc = DUE_EAGAIN;
    }
    if (rc == DUE_EAGAIN) {
        rc = due__redis_unreached(s);
    } else if (rc == DUE_EACCES && s->trouble[0] == '\0') {
        due__redis_say(s, "check user and password", "the server at %.80s: %.90s", s->where,
                       due__link_trouble(s->link));
    }
    return rc;
}
