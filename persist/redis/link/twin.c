/* twin.c - a second link to the same server, and replies that come when they will: for a
 * subscription.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/time.h"
#include "redis/link/link_inside.h"
#include "redis/os/secret.h"

#define INPUT_ROOM ((size_t)64 << 10)

static bool copy_text(char **to, const char *from)
{
    *to = from != NULL ? strdup(from) : NULL;
    return (*to != NULL) == (from != NULL);
}

/* The greeting has the password in it. */
static bool copy_greeting(struct due__greeting *to, const struct due__greeting *from)
{
    *to = *from;
    to->bytes.at = due__secret_new(from->bytes.room);
    if (to->bytes.at == NULL)
        return false;
    due__secret_copy(to->bytes.at, from->bytes.at, from->bytes.len);
    return true;
}

struct due__link *due__link_twin(const struct due__link *l)
{
    struct due__link *twin = calloc(1, sizeof *twin);

    if (twin == NULL)
        return NULL;
    twin->address.port = l->address.port;
    twin->address.db = l->address.db;
    twin->limits = l->limits;
    twin->fd = -1;
    twin->trouble = "not connected yet";
    due__backoff_init(&twin->backoff, l->limits.backoff_min_ns, l->limits.backoff_max_ns,
                      (uint64_t)due__mono_ns() ^ (uint64_t)(uintptr_t)twin);
    twin->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    twin->reader = due__reader_new(l->limits.reply_elements, l->limits.reply_bytes);
    if (twin->bell < 0 || twin->reader == NULL ||
        !copy_text(&twin->address.host, l->address.host) ||
        !copy_text(&twin->address.path, l->address.path) ||
        !copy_greeting(&twin->greeting, &l->greeting) ||
        !due__bytes_reserve(&twin->input, INPUT_ROOM)) {
        due__link_free(twin);
        return NULL;
    }
    return twin;
}

void due__link_expect(struct due__link *l)
{
    if (l->pending == 0)
        l->pending = 1;
    l->answer_ns = INT64_MAX;
}
