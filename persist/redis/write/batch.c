/* batch.c - batches of changes.
 *
 * One write, and its answers: MULTI, the changes, the batch's number, EXEC, and then the guard of
 * the next batch.  All changes of a kind go in one command, one per topic for the zsets.  EXEC does
 * nothing if the fence or the number was written since the guard before it was set.
 *
 * The fence: somebody else is the owner.  The number: what was sent on a connection that was given
 * up may reach the server at any later time, when the same batch was sent again, and has landed,
 * and others behind it.  Each batch writes the number; so of all that were sent behind one guard,
 * on whatever connections, one can land.
 *
 * Always  B1  s->doubt is the number of a batch that may have landed and may have not.  Only an
 *             answer of EXEC, or the number on the server after a lost connection, settles it.
 *         B2  s->landed never falls, but for what the server has lost.
 */
#include <string.h>

#include "redis/write/write.h"

#define AGAIN 1 /* of a step: once more */

/* ---- What came of it ------------------------------------------------------------------------- */

static void has_landed(struct due__redis *s)
{
    uint64_t number = s->air.tag;
    const redisReply *wait = s->air.expected == 4 ? s->air.kept[3] : NULL;

    s->verdict = 0;
    due__link_wrote(s->link);
    if (number > s->landed) {
        s->landed = number;
        due__redis_count(s, 1, 0, 0);
    }
    s->doubt = 0;
    s->unconfirmed = 0;
    if (wait != NULL && (wait->type != REDIS_REPLY_INTEGER || wait->integer < s->set.wait_replicas))
        s->unconfirmed = number;
    due__format_over(s, number, true);
}

/* Refused as a whole: what for. */
static int refused(struct due__redis *s, const redisReply *exec)
{
    enum due__reply_class class = s->air.worst;

    if (class == DUE__REPLY_FINE)
        class = due__redis_classify(s, exec);
    if (class == DUE__REPLY_ABORTED)
        class = strstr(exec->str, "OOM") != NULL ? DUE__REPLY_FULL : DUE__REPLY_AGAIN;
    return due__redis_error(s, class);
}

static bool has_errors(const redisReply *exec)
{
    for (size_t i = 0; i < exec->elements; i++)
        if (exec->element[i] == NULL || exec->element[i]->type == REDIS_REPLY_ERROR)
            return true;
    return false;
}

/* It has been carried out, but not as it was sent: of what has landed the number says nothing.  All
 * of it is sent once more, on another connection, with the number as it was before. */
static void do_again(struct due__redis *s)
{
    due__link_down(s->link);
    s->armed = false;
    s->rewrite = true;
    s->doubt = s->air.tag > s->landed ? s->air.tag : 0;
    s->verdict = AGAIN;
}

/* The answers of a batch are there. */
static void batch_over(struct due__redis *s)
{
    const redisReply *exec = s->air.kept[0];
    bool answered = s->air.script && exec->type == REDIS_REPLY_INTEGER;
    bool done = answered && exec->integer == 1;
    bool held = answered || (!s->air.script && exec->type == REDIS_REPLY_NIL);

    due__redis_guarded(s, 1);
    if (exec->type == REDIS_REPLY_ARRAY && !s->air.script) {
        if (due__flight_is_odd(s, exec)) {
            do_again(s);
            return;
        }
        done = !has_errors(exec);
        if (!done) {
            /* Somebody put other things under our keys; the number must not stay. */
            s->rewrite = true;
            s->armed = false;
            s->doubt = 0;
            s->verdict = DUE_ECORRUPT;
            return;
        }
    }
    if (done) {
        has_landed(s);
    } else if (held) {
        /* The fence or the number was written, or lost with everything else. */
        s->doubt = 0;
        s->armed = false;
        s->verdict = AGAIN;
    } else if (due__reply_classify(exec) == DUE__REPLY_ABORTED ||
               (s->air.script && exec->type == REDIS_REPLY_ERROR)) {
        s->doubt = 0;
        s->verdict = refused(s, exec);
    } else {
        /* Not a transaction at all, or no sense: the number will tell. */
        due__link_down(s->link);
        s->armed = false;
        s->verdict = AGAIN;
    }
}

/* ---- Committing ------------------------------------------------------------------------------ */

/* What a full server takes, by a script. */
static bool is_for_full(const due_change *changes, size_t n)
{
    if (due__settings_only(changes, n))
        return true;
    for (size_t i = 0; i < n; i++)
        if (changes[i].kind != DUE_CHANGE_DROP && changes[i].kind != DUE_CHANGE_FORGET)
            return false;
    return true;
}

int due__redis_launch(struct due__redis *s, uint64_t number, bool script, int64_t until_ns)
{
    bool again = s->sent >= number;
    bool waits = !script && s->set.wait_replicas > 0;

    s->writes++;
    due__link_owes(s->link);
    s->batch_ns = due__mono_ns();
    int rc = due__flight_start(s, DUE__FLIGHT_BATCH, number, s->statuses, waits ? 4 : 3, until_ns);
    s->air.script = script;
    s->air.over = batch_over;
    if (rc == 0 || (rc == DUE_ESTORE && !s->unsent)) {
        s->doubt = number > s->landed ? number : 0;
        s->sent = number > s->sent ? number : s->sent;
        if (again && number > s->landed)
            due__redis_count(s, 0, 1, 0);
    }
    return rc;
}

static int send_batch(struct due__redis *s, const due_change *changes, size_t n, uint64_t number,
                      bool script, int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_BATCH, number, until_ns);

    if (rc != 0)
        return rc;
    rc = script ? due__format_script(s, changes, n, number)
                : due__format_batch(s, changes, n, number);
    return rc != 0 ? rc : due__redis_launch(s, number, script, until_ns);
}

/* Landed, but replicas lack it.  After a new connection only a write of its own can be waited for,
 * so the number is written once more. */
static int send_number(struct due__redis *s, uint64_t number, int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_BATCH, number, until_ns);

    if (rc != 0)
        return rc;
    due__format_number(s, number);
    rc = due__flight_start(s, DUE__FLIGHT_BATCH, number, s->statuses,
                           s->set.wait_replicas > 0 ? 4 : 3, until_ns);
    s->air.over = batch_over;
    return rc;
}

/* The answer of a batch under way.  0: it has landed; AGAIN; or an error. */
static int hear(struct due__redis *s, int64_t until_ns)
{
    int rc = due__flight_land(s, until_ns);

    if (rc != 0)
        return rc == DUE_EAGAIN ? DUE_EINDOUBT : AGAIN;
    batch_over(s);
    due__flight_end(s);
    return s->verdict == DUE_ESTORE ? AGAIN : s->verdict;
}

/* It is there.  What remains is that the load hears of it, and that the replicas have it. */
static int finish(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    if (s->counted < number) {
        due__redis_load_count(s, changes, n, number);
        s->counted = number;
    }
    if (s->unconfirmed == number)
        return DUE_EINDOUBT;
    s->told = number;
    return 0;
}

static bool is_under_way(const struct due__redis *s, uint64_t number)
{
    return s->air.kind == DUE__FLIGHT_BATCH && s->air.tag == number;
}

/* Whether the caller can be given this error: not while it is open whether the batch landed. */
static int told(const struct due__redis *s, uint64_t number, int rc)
{
    if (s->landed >= number)
        return s->unconfirmed == number ? DUE_EINDOUBT : rc;
    return s->doubt == number && rc != DUE_EFENCED ? DUE_EINDOUBT : rc;
}

static int check_changes(const struct due__redis *s, const due_change *changes, size_t n,
                         uint64_t number)
{
    if (n == 0 || n > s->set.batch_changes || number == 0)
        return DUE_EINVAL;
    for (size_t i = 0; i < n; i++) {
        const due_record *r = &changes[i].record;
        if (r->key_len > DUE_KEY_MAX || r->headers_len > DUE_HEADERS_MAX ||
            r->group_len > DUE_KEY_MAX)
            return DUE_EINVAL;
        if (changes[i].kind > DUE_CHANGE_FORGET && changes[i].kind != DUE_CHANGE_TOPIC)
            return DUE_EINVAL;
        if (changes[i].kind == DUE_CHANGE_KEEP || changes[i].kind == DUE_CHANGE_FORGET)
            continue;
        if (r->topic == NULL || strnlen(r->topic, DUE_TOPIC_LENGTH + 1) > DUE_TOPIC_LENGTH)
            return DUE_EINVAL;
        if (changes[i].kind == DUE_CHANGE_PUT && r->len > s->payload_max)
            return DUE_ELIMIT;
    }
    return 0;
}

int due__redis_format(struct due__redis *s, const due_change *changes, size_t n, uint64_t number)
{
    int rc = check_changes(s, changes, n, number);

    return rc != 0 ? rc : due__format_batch(s, changes, n, number);
}

int due__redis_commit(struct due__redis *s, const due_change *changes, size_t n, uint64_t number,
                      int64_t until_ns)
{
    bool script = false;
    bool tried = false; /* in this call */
    int rc = check_changes(s, changes, n, number);

    while (rc == 0) {
        if (is_under_way(s, number)) {
            rc = hear(s, until_ns);
            if (rc == DUE_ENOSPC && !script && is_for_full(changes, n))
                rc = AGAIN, script = true;
            else if (rc == DUE_EACCES && script)
                rc = DUE_ENOSPC; /* scripts are forbidden here: it is full all the same */
            if (rc < 0)
                return told(s, number, rc);
            tried = true;
        }
        if (s->landed >= number) {
            rc = finish(s, changes, n, number);
            if (rc == 0 || tried)
                return rc;
        }
        rc = due__redis_up(s, until_ns);
        if (rc != 0 && s->landed >= number && s->unconfirmed != number)
            return finish(s, changes, n, number);
        if (rc == 0 && s->lost && s->landed < number)
            rc = DUE_EAGAIN;
        if (rc != 0)
            return told(s, number, rc);
        if (s->landed < number) {
            rc = check_changes(s, changes, n, number); /* it may take less now */
            if (rc == 0)
                rc = send_batch(s, changes, n, number, script, until_ns);
        } else if (s->unconfirmed == number) {
            rc = send_number(s, number, until_ns);
        }
        if (rc == DUE_ESTORE)
            rc = until_ns > due__mono_ns() ? 0 : DUE_EAGAIN;
    }
    return told(s, number, rc);
}
