/* jobs.c - a page of jobs, or one: found by topic, state, key and id.
 *
 *     {"job":{...},"bytes":102400}   as `duectl ls --json` has it, its payload and headers cut
 *     {"missing":"ff00...","why":"DUE_ENOENT"}
 *     {"more":true}
 *
 * Jobs come in the order of the store, and those before the page are passed over.
 */
#define _GNU_SOURCE
#include "web/web.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct paging {
    const struct ctl_page *page;
    struct due__ctl_buffer *out;
    uint64_t found;
    uint64_t unreadable;
    bool more;
};

/* As much of a text as there is room for; one of UTF-8 ends with a character. */
static size_t cut(const void *text, size_t len, size_t most)
{
    const unsigned char *at = text;

    if (len <= most)
        return len;
    for (size_t back = 0; back < 4 && back < most; back++) {
        if ((at[most - back] & 0xc0) != 0x80)
            return most - back;
    }
    return most;
}

void ctl_job_show(struct due__ctl_buffer *out, const char *name, const due_record *record,
                  size_t most)
{
    due_record r = *record;

    r.len = cut(r.data, r.len, most);
    due__ctl_buffer_text(out, "{\"%s\":", name);
    ctl_dump_listed(out, &r);
    out->len -= out->len > 0; /* its line feed */
    due__ctl_buffer_text(out, ",\"bytes\":%zu}\n", record->len);
}

static bool is_wanted(const struct ctl_page *p, due_id id, const due_record *r)
{
    size_t len = strlen(p->find);
    char text[DUE_ID_TEXT];

    if (p->has_topic && strcmp(p->topic, r->topic) != 0)
        return false;
    if (p->state[0] != '\0' && strcmp(p->state, ctl_state_of(r)) != 0)
        return false;
    return len == 0 || strncmp(due_id_format(id, text), p->find, len) == 0 ||
           (r->key_len > 0 && memmem(r->key, r->key_len, p->find, len) != NULL);
}

static bool visit_job(void *ctx, due_id id, int rc, const due_record *record)
{
    struct paging *p = ctx;

    if (rc != 0) {
        p->unreadable++;
        return true;
    }
    if (!is_wanted(p->page, id, record))
        return true;
    uint64_t at = p->found++;
    if (at < p->page->from)
        return true;
    p->more = at >= p->page->from + p->page->most;
    if (!p->more)
        ctl_job_show(p->out, "job", record, CTL_EXCERPT_BYTES);
    return !p->more && !p->out->failed;
}

static bool visit_named(void *ctx, due_id id, int rc, const due_record *record)
{
    struct paging *p = ctx;
    char text[DUE_ID_TEXT];

    if (id.byte[DUE_STORE_ID_BYTES] != 0 || id.byte[DUE_STORE_ID_BYTES + 1] != 0)
        rc = DUE_ENOENT; /* a stored one has zeroes there, which are not stored */
    if (rc == 0)
        ctl_job_show(p->out, "job", record, p->page->whole ? CTL_SHOWN_BYTES : CTL_EXCERPT_BYTES);
    else
        due__ctl_buffer_text(p->out, "{\"missing\":\"%s\",\"why\":\"%s\"}\n",
                             due_id_format(id, text), due_error_name(rc));
    return true;
}

int ctl_page(const struct ctl_look *look, const void *ctx, struct due__ctl_buffer *out)
{
    const struct ctl_page *page = ctx;
    struct paging p = { .page = page, .out = out };
    int status = page->has_id ? ctl_jobs_named(look, &page->id, 1, visit_named, &p)
                              : ctl_jobs(look, visit_job, &p);

    if (p.unreadable > 0)
        fprintf(stderr, "duectl: %" PRIu64 " jobs cannot be read: duectl verify says more\n",
                p.unreadable);
    due__ctl_buffer_text(out, "{\"more\":%s}\n", p.more ? "true" : "false");
    return status == CTL_FINE && p.unreadable > 0 ? CTL_FAULTS : status;
}
