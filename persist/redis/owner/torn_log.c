/* torn_log.c - what a torn log may take back at the server's next start.
 *
 * A server that finds half a transaction at the end of its log drops it; but when it ends within a
 * command, Redis 7 cuts only that command off and leaves those before it in the file, behind their
 * MULTI.  What is appended from then on stands behind them, and at the next start they are carried
 * out together with the next transaction.  So a batch that had not landed lands after all, or half
 * of it: later, but before everything that was written since.
 *
 * An owner that lives on sends that batch again, whole, before anything else.  If it has died with
 * the server, nobody knows the batch; but whatever it does is undone by what is written later.  So
 * who takes over from an owner that did not close, on a server that was started since, is unsure:
 * it puts everything again once it has been read.  Until that is done, whoever follows it is unsure
 * too.
 *
 * What is written later does not undo a job that the batch puts and nobody has seen.  That is there
 * from the next start on, beside what the queue holds, which may have said meanwhile that there is
 * no such job, and that its key is free.  So to an owner that has met one start of the server after
 * that death the next one is a loss: it puts everything again, and drops what it does not know.
 * The start before is `late` in `meta`, whoever owns the queue by then, and until another comes.
 *
 * Half a batch can leave a record without a place in any zset.  So who is unsure shows all records,
 * wherever they stand; and so does who puts everything again since half a batch may have landed.
 *
 * `server` in `meta` names the start of the server that the owner met; "?" while it is unsure.  It
 * is gone after a proper end; `late` is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/owner/owner.h"

void due__redis_suspect(struct due__redis *s, const struct due__redis_survey *was)
{
    bool started = s->server[0] == '\0' || strcmp(was->server, s->server) != 0;

    /* Once it is, it stays so: a claim that landed unheard has our own name there. */
    if (was->server[0] != '\0' && started && s->durability != DUE_DURABLE_NONE)
        s->unsure = true;
    bool before = s->durability != DUE_DURABLE_NONE && s->server[0] != '\0' &&
                  strcmp(was->late, s->server) == 0;
    s->late = (s->unsure || before) && !s->joining;
    /* What is put again is to be taken away from wherever that batch may have put it. */
    if (s->unsure)
        s->lossy = s->has_entries = s->has_dead = true;
}

void due__redis_met(struct due__redis *s, const char *server)
{
    bool other = s->server[0] != '\0' && server[0] != '\0' && strcmp(server, s->server) != 0;

    snprintf(s->server, sizeof s->server, "%s", server);
    if (!s->open || !s->late || !other)
        return;
    s->late = false;
    s->unsure = true;
    due__store_log(&s->how, DUE_LOG_INFO,
                   "the server was started again, and its log may have been torn before");
    /* A batch of ours in doubt has not landed then, whatever the number on the server says. */
    s->rewrite = true;
    s->armed = false;
    due__redis_note_loss(s);
}

const char *due__redis_server(const struct due__redis *s)
{
    return s->unsure || s->server[0] == '\0' ? "?" : s->server;
}

/* ---- Sure again ------------------------------------------------------------------------------ */

/* Under the guard, so that nobody's word is written over but ours. */
static int write_server(struct due__redis *s, int64_t until_ns)
{
    int rc = due__flight_ready(s, DUE__FLIGHT_SURE, 0, until_ns);

    if (rc == 0) {
        due__redis_bare(s, "MULTI");
        due__redis_word(s, s->keys.meta, 2, "HSET");
        due__link_text(s->link, "server");
        due__link_text(s->link, due__redis_server(s));
    }
    rc = due__redis_transact(s, DUE__FLIGHT_SURE, 1, rc, until_ns);
    if (rc != 0)
        return rc;
    /* If it was refused, because the server is full, the next owner is unsure for nothing. */
    due__flight_end(s);
    return 0;
}

int due__redis_all_read(struct due__redis *s, int64_t until_ns)
{
    bool again = s->unsure && s->read_once; /* between the two everything was put again */

    s->read_once = true;
    if (again)
        s->unsure = false;
    return again || s->air.kind == DUE__FLIGHT_SURE ? write_server(s, until_ns) : 0;
}
