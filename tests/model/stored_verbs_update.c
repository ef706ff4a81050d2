/* stored_verbs_update.c - the steps of stored_model.c that give a job other bytes, headers, another
 * time, policy or limit, or several of these in one change.
 */
#include "model/stored_known.h"

struct amendment {
    unsigned what;
    int content;
    int head;
    int64_t at;
    due_retry retry;
    struct stored_limit limit;
};

/* An answer other than 0 and DUE_EINDOUBT: may it be? */
static bool no(struct stored_world *w, const struct stored_job *j, int rc, unsigned what)
{
    bool ends = j->dead && (what & (DUE_SET_TIME | DUE_SET_LIMIT));

    if (rc == DUE_ENOENT && j->in && !ends && !restless(j))
        return stored_wrong(w, "not found to be changed", j);
    if (rc == DUE_EBUSY && !leased(w, j) && !lent(w, j) && !restless(j))
        return stored_wrong(w, "busy though nobody has it or its bytes", j);
    return rc == DUE_ENOENT || rc == DUE_EBUSY || refused(rc) ||
           stored_wrong(w, "a change of content answers otherwise", j);
}

static void amended(struct stored_world *w, struct stored_job *j, const struct amendment *a,
                    bool sure)
{
    bool only = sure && !restless(j);

    if (a->what & DUE_SET_DATA)
        add_content(j, a->content, only);
    if (a->what & DUE_SET_HEADERS)
        add_head(j, a->head, only);
    if (a->what & DUE_SET_TIME) {
        add_time(j, a->at, a->at, only);
        j->arrival = w->arrivals++;
        run_over(j, only);
        j->plain = only;
    }
    if (a->what & DUE_SET_LIMIT)
        add_limit(j, a->limit, only);
    j->buried = 0; /* its death is not put off, but its end may be */
    if (a->what & DUE_SET_RETRY) {
        j->retry = a->retry;
        j->mortal |= spent(w, j) && !j->dead; /* it may be buried instead of handed out */
    }
    j->shaky |= !sure;
    if (sure) {
        j->in = true;
        j->unsure = false;
    }
}

/* What @value says.  The policy is changed only where it is known whether it was; that of a job
 * with a key follows from the key. */
static struct amendment choose(const struct stored_world *w, const struct stored_job *j,
                               uint64_t value)
{
    static const unsigned masks[] = {
        DUE_SET_DATA,
        DUE_SET_DATA | DUE_SET_TIME,
        DUE_SET_HEADERS,
        DUE_SET_TIME,
        DUE_SET_DATA | DUE_SET_HEADERS,
        DUE_SET_HEADERS | DUE_SET_TIME,
        DUE_SET_RETRY,
        DUE_SET_LIMIT,
        DUE_SET_RETRY | DUE_SET_TIME,
        DUE_SET_LIMIT | DUE_SET_HEADERS | DUE_SET_DATA | DUE_SET_TIME,
    };
    struct amendment a = { .what = masks[value % (sizeof masks / sizeof masks[0])],
                           .content = (int)(value >> 24 & 0xffff),
                           .head = (int)(value >> 40 & 0xff),
                           .at = 1 + w->now / 2 + (int64_t)(value >> 8 & 0xff),
                           .retry = { .kind = DUE_RETRY_FIXED,
                                      .attempts_max = (uint32_t)(value >> 4 & 3),
                                      .delay_ns = 5 } };

    if (value >> 50 & 1)
        a.limit.ttl = w->pattern & STORED_MORTAL ? 1 + (int64_t)(value >> 52 & 0x3f) : DUE_S(1000);
    if ((a.what & DUE_SET_RETRY) && (asynchronous(w) || stored_fails(w) || j->key != 0))
        a.what = DUE_SET_HEADERS;
    return a;
}

static int amend(struct stored_world *w, const struct stored_job *j, const struct amendment *a)
{
    unsigned char bytes[STORED_BYTES];
    unsigned char head[STORED_BYTES];
    due_extra more = { DUE_EXTRA_INIT, .headers = head, .retry = &a->retry,
                       .ttl_ns = a->limit.ttl };
    due_spec spec = { DUE_SPEC_INIT, .data = bytes, .more = &more };

    stored_payload(a->content, bytes, &spec.len);
    stored_headers(a->head, head, &more.headers_len);
    spec.at_ns = a->what & DUE_SET_TIME ? a->at : 0;
    return a->what == DUE_SET_DATA ? due_update(w->q, j->id, spec.data, spec.len)
                                   : due_amend(w->q, j->id, &spec, a->what);
}

bool stored_update(struct stored_world *w, uint32_t n, uint64_t value)
{
    struct stored_job *j = some_job(w, n);

    if (j == NULL)
        return true;
    struct amendment a = choose(w, j, value);
    bool moves = (a.what & (DUE_SET_TIME | DUE_SET_LIMIT)) != 0;
    bool bytes = (a.what & (DUE_SET_DATA | DUE_SET_HEADERS)) != 0;
    stored_note_refused(w);
    int rc = amend(w, j, &a);
    stored_note_refused(w);
    if (rc != 0 && rc != DUE_EINDOUBT)
        return no(w, j, rc, a.what);
    if (!j->in && !j->unsure)
        return stored_wrong(w, "changed though it was gone", j);
    if (moves && j->dead && !j->mortal)
        return stored_wrong(w, "its time was changed though it is dead", j);
    if ((leased(w, j) || (bytes && lent(w, j))) && !restless(j))
        return stored_wrong(w, "changed though somebody has it", j);
    amended(w, j, &a, rc == 0 && !asynchronous(w));
    return true;
}
