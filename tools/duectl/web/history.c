/* history.c - the looks of the last while, as they were written.
 *
 * A look writes lines: first its sample, then its topics and the oldest jobs.  Behind a zero byte
 * follow the hashes of the ids it has seen, for the next one to compare with.
 */
#include "web/web.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void keep(struct due__ctl_buffer *b, const void *bytes, size_t len)
{
    b->len = 0;
    b->failed = false;
    due__ctl_buffer_add(b, bytes, len);
}

static void keep_sample(struct ctl_history *h, const char *line, size_t len)
{
    size_t at = h->count % CTL_LOOKS;
    char *copy = malloc(len);

    if (copy == NULL)
        return;
    memcpy(copy, line, len);
    free(h->samples[at]);
    h->samples[at] = copy;
    h->lens[at] = len;
    h->count++;
}

static void keep_seen(struct ctl_history *h, const char *bytes, size_t len)
{
    keep(&h->seen, bytes, len);
    h->last =
        (struct ctl_seen){ .hashes = len > 0 && !h->seen.failed ? (void *)h->seen.bytes : NULL,
                           .n = len / sizeof(uint64_t),
                           .at_ns = ctl_web_now() };
}

void ctl_history_add(struct ctl_history *h, struct ctl_errand *look)
{
    struct due__ctl_buffer *out = &look->out;
    const char *first = out->len == 0 ? NULL : memchr(out->bytes, '\n', out->len);
    const char *text_end = out->len == 0 ? NULL : memchr(out->bytes, '\0', out->len);

    h->status = look->status;
    keep(&h->said, look->said.bytes, look->said.len);
    if (first == NULL || text_end == NULL || look->cut)
        return;
    keep_sample(h, out->bytes, (size_t)(first - out->bytes) + 1);
    keep(&h->rest, first + 1, (size_t)(text_end - first) - 1);
    keep_seen(h, text_end + 1, out->len - (size_t)(text_end - out->bytes) - 1);
}

bool ctl_history_said(struct ctl_history *h, const struct ctl_errand *e)
{
    bool same = e->said.len == h->said.len &&
                (h->said.len == 0 || memcmp(e->said.bytes, h->said.bytes, h->said.len) == 0);

    keep(&h->said, e->said.bytes, e->said.len);
    return !same && h->said.len > 0;
}

void ctl_history_write(const struct ctl_history *h, uint64_t after, struct due__ctl_buffer *to)
{
    uint64_t from = h->count > CTL_LOOKS ? h->count - CTL_LOOKS : 0;

    if (after <= h->count && after > from)
        from = after;
    for (uint64_t i = from; i < h->count; i++)
        due__ctl_buffer_add(to, h->samples[i % CTL_LOOKS], h->lens[i % CTL_LOOKS]);
    due__ctl_buffer_add(to, h->rest.bytes, h->rest.len);
    due__ctl_buffer_text(to, "{\"looks\":%" PRIu64 "}\n", h->count);
}

void ctl_history_last(const struct ctl_history *h, struct due__ctl_buffer *to)
{
    size_t at = (h->count + CTL_LOOKS - 1) % CTL_LOOKS;

    if (h->count == 0)
        due__ctl_buffer_text(to, "null");
    else
        due__ctl_buffer_add(to, h->samples[at], h->lens[at] - 1);
}

void ctl_said_dump(struct due__ctl_buffer *to, const struct due__ctl_buffer *said)
{
    size_t len = said->len;

    while (len > 0 && said->bytes[len - 1] == '\n')
        len--;
    due__ctl_json_shown(to, len == 0 ? "" : said->bytes, len);
}

void ctl_history_free(struct ctl_history *h)
{
    for (size_t i = 0; i < CTL_LOOKS; i++)
        free(h->samples[i]);
    due__ctl_buffer_free(&h->rest);
    due__ctl_buffer_free(&h->said);
    due__ctl_buffer_free(&h->seen);
}
