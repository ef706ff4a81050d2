/* stored_verbs_update.c - the steps of stored_model.c that give a job other bytes, or another time
 * with it, in one change.
 */
#include "stored_known.h"

/* An answer other than 0 and DUE_EINDOUBT: may it be? */
static bool no(struct stored_world *w, const struct stored_job *j, int rc, bool moves)
{
    if (rc == DUE_ENOENT && j->in && !(moves && j->dead) && !restless(j))
        return stored_wrong(w, "not found to be changed", j);
    if (rc == DUE_EBUSY && !leased(w, j) && !lent(w, j) && !restless(j))
        return stored_wrong(w, "busy though nobody has it or its bytes", j);
    return rc == DUE_ENOENT || rc == DUE_EBUSY || refused(rc) ||
           stored_wrong(w, "a change of content answers otherwise", j);
}

/* @at: INT64_MIN: it keeps its time. */
static void amended(struct stored_world *w, struct stored_job *j, int content, int64_t at,
                    bool sure)
{
    bool only = sure && !restless(j);

    add_content(j, content, only);
    if (at != INT64_MIN) {
        add_time(j, at, at, only);
        j->arrival = w->arrivals++;
        run_over(j);
        j->plain = only;
    }
    j->shaky |= !sure;
    if (sure) {
        j->in = true;
        j->unsure = false;
    }
}

bool stored_update(struct stored_world *w, uint32_t n, uint64_t value)
{
    struct stored_job *j = some_job(w, n);
    int content = (int)(value >> 24 & 0xffff);
    bool moves = (value & 1) != 0;
    int64_t at = moves ? 1 + w->now / 2 + (int64_t)(value >> 8 & 0xff) : INT64_MIN;
    unsigned char bytes[128];
    due_spec spec = { .size = DUE_SPEC_INIT, .data = bytes, .at_ns = moves ? at : 0 };

    if (j == NULL)
        return true;
    stored_payload(content, bytes, &spec.len);
    stored_note_refused(w);
    int rc = moves ? due_amend(w->q, j->id, &spec, (unsigned)DUE_SET_DATA | DUE_SET_TIME)
                   : due_update(w->q, j->id, spec.data, spec.len);
    stored_note_refused(w);
    if (rc != 0 && rc != DUE_EINDOUBT)
        return no(w, j, rc, moves);
    if (!j->in && !j->unsure)
        return stored_wrong(w, "changed though it was gone", j);
    if (moves && j->dead && !j->mortal)
        return stored_wrong(w, "its time was changed though it is dead", j);
    if ((leased(w, j) || lent(w, j)) && !restless(j))
        return stored_wrong(w, "changed though somebody has it", j);
    amended(w, j, content, at, rc == 0 && !asynchronous(w));
    return true;
}
