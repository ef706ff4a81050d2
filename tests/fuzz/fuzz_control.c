/* fuzz_control.c - any bytes as a request of a control socket: refused with a place and words, or a
 * request within its bounds, which is the same when it is written and read again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/request.h"

static bool same_job(const due_spec *a, const due_spec *b)
{
    const due_extra *x = a->more, *y = b->more;

    return a->at_ns == b->at_ns && a->delay_ns == b->delay_ns && a->flags == b->flags &&
           a->len == b->len && a->priority == b->priority && x->key_len == y->key_len &&
           x->on_key == y->on_key && x->group_len == y->group_len &&
           x->headers_len == y->headers_len && x->ttl_ns == y->ttl_ns &&
           (x->key_len == 0 || memcmp(x->key, y->key, x->key_len) == 0) &&
           (x->headers_len == 0 || memcmp(x->headers, y->headers, x->headers_len) == 0);
}

static void check_bounds(const struct due__ctl_request *r)
{
    assert(r->verb < DUE__CTL_VERBS && r->n <= DUE__CTL_IDS && r->jobs <= DUE__CTL_JOBS);
    assert(strlen(r->topic) <= DUE_TOPIC_LENGTH && strlen(r->queue) <= DUE__CTL_NAME_MAX);
    assert(r->key_len <= DUE_KEY_MAX && r->max <= DUE__CTL_IDS && r->data <= DUE__CTL_DATA_MAX);
    assert(due__ctl_request_body(r) <= DUE_PAYLOAD_MAX);
    for (size_t i = 0; i < r->jobs; i++) {
        assert(r->specs[i].at_ns >= 0 && r->specs[i].delay_ns >= 0 && r->specs[i].data == NULL);
        assert(r->specs[i].more == &r->extras[i] && r->extras[i].group_len <= DUE_KEY_MAX);
    }
}

static void check_again(const struct due__ctl_request *r)
{
    static struct due__ctl_request back;
    struct due__ctl_buffer b = { 0 };

    due__ctl_request_write(&b, r);
    assert(!b.failed && b.len > 1 && b.bytes[b.len - 1] == '\n');
    struct due__ctl_json j = { .line = b.bytes, .len = b.len - 1 };
    bool plain = true; /* a queue is written as it is, so it has to be a name */

    for (const char *at = r->queue; *at != '\0'; at++)
        plain = plain && *at > ' ' && *at < 0x7f && *at != '"' && *at != '\\';
    /* Nothing but ids can be an empty list. */
    if (plain && (r->n > 0 || r->verb > DUE__CTL_RESCHEDULE) &&
        (r->verb != DUE__CTL_SHOW || r->n + r->key_len > 0)) {
        if (!due__ctl_request_read(&back, &j))
            abort();
        assert(back.verb == r->verb && back.n == r->n && back.jobs == r->jobs);
        assert(back.at_ns == r->at_ns && back.delay_ns == r->delay_ns && back.max == r->max);
        assert(back.cursor == r->cursor && back.data == r->data && back.key_len == r->key_len);
        assert(strcmp(back.topic, r->topic) == 0 && strcmp(back.queue, r->queue) == 0);
        assert(memcmp(back.ids, r->ids, r->n * sizeof *r->ids) == 0);
        for (size_t i = 0; i < r->jobs; i++)
            assert(same_job(&r->specs[i], &back.specs[i]));
    }
    due__ctl_buffer_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct due__ctl_request r;

    while (len > 0) {
        const uint8_t *end = memchr(bytes, '\n', len);
        size_t n = end == NULL ? len : (size_t)(end - bytes);
        struct due__ctl_json j = { .line = malloc(n + 1), .len = n };

        memcpy(j.line, bytes, n);
        if (due__ctl_request_read(&r, &j)) {
            check_bounds(&r);
            check_again(&r);
        } else {
            assert(j.fault != NULL && j.at <= n);
        }
        free(j.line);
        n += end != NULL;
        bytes += n;
        len -= n;
    }
    return 0;
}
