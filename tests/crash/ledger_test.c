/* ledger_test.c - the checker itself: each kind of fault, planted in lines, must be found. */
#include <stdio.h>
#include <string.h>

#include "crew.h"
#include "ledger.h"

/* What is not as usual in a script: */
#define ASYNC 1 /* the first life is */
#define RISK  2 /* the server dies with it, at a level that may lose what was confirmed */

struct script {
    const char *name;
    const char *first;  /* lines of a life that is killed at 1000 */
    const char *second; /* of the life that takes everything out */
    unsigned how;
    struct ledger_verdict want;
};

/* Thread 1 enqueues the job N, whose id is idN, without a key or with key 7. */
#define BARE(n, at)                "1 1 enqueue? " n " " at " 0 0 0 refuse\n"
#define ASK(n, at, policy)         "1 1 enqueue? " n " " at " 0 0 7 " policy "\n"
#define PUT(n, at)                 BARE(n, at) "1 2 enqueue! " n " DUE_OK id" n "\n"
#define ADD(n, at, policy, answer) ASK(n, at, policy) "1 2 enqueue! " n " " answer "\n"
#define KEYED(n, at)               ADD(n, at, "refuse", "DUE_OK id" n)
/* Thread 2 asks and is told, of job id1 unless it is said. */
#define SAYS(verb, answer) "2 6 " verb "? id1\n2 7 " verb "! id1 " answer "\n"
#define UPDATE(n, answer)  "2 6 update? id1 " n "\n2 7 update! id1 " answer "\n"
#define HAS(n, id)         "2 6 reserve? 90\n2 7 reserve! DUE_OK " n " " id " 0 0 1\n"
#define FLUSH              "3 8 flush?\n3 9 flush! DUE_OK\n"
#define FIND(answer)       "1 8 find? 7\n1 9 find! 7 " answer "\n"
#define OUT(n, id, t)      "1 1500 dequeue?\n1 " t " dequeue! DUE_OK " n " " id " 0 0 1\n"
#define OUT_1(t)           OUT("1", "id1", t)
#define LIST(ids)          "1 1600 list?\n" ids "1 1600 list! DUE_OK\n"
#define DEAD_1             "1 1600 dead id1\n"
#define KICK_1             "1 1700 kick? id1\n1 1700 kick! id1 DUE_OK\n"
#define BURIED             PUT("1", "5") HAS("1", "id1") SAYS("bury", "DUE_OK")

static const struct script scripts[] = {
    { "all is well", PUT("1", "500"), OUT_1("2000"), 0, { .told = 1, .handed = 1 } },
    { "lost", PUT("1", "500"), "", 0, { .told = 1, .lost = 1 } },
    { "at risk", PUT("1", "500"), "", RISK, { .told = 1, .missing = 1 } },
    { "cut short", PUT("1", "500") "2 600 dequeue?\n", "", 0, { .told = 1, .excused = 1 } },
    { "not due when it was cut short",
      PUT("1", "1500") "2 600 dequeue?\n",
      "",
      0,
      { .told = 1, .lost = 1 } },
    { "doubled",
      PUT("1", "5") "2 6 dequeue?\n2 7 dequeue! DUE_OK 1 id1 0 0 1\n",
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 2, .doubled = 1 } },
    { "after its ack",
      PUT("1", "5") HAS("1", "id1") SAYS("ack", "DUE_OK"),
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 2, .doubled = 1 } },
    { "reserved and not acked",
      PUT("1", "5") HAS("1", "id1") "2 8 ack? id1\n",
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 2 } },
    { "leased twice",
      PUT("1", "5") HAS("1", "id1") "3 8 reserve? 90\n3 9 reserve! DUE_OK 1 id1 0 0 1\n",
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 3, .doubled = 1 } },
    { "told of a lease that was over by then",
      PUT("1", "5") "3 6 reserve? 90\n" HAS("1", "id1")
          SAYS("ack", "DUE_OK") "3 96 reserve! DUE_OK 1 id1 0 0 1\n",
      "",
      0,
      { .told = 1, .handed = 2 } },
    { "under another id",
      PUT("1", "5"),
      OUT("1", "id9", "2000"),
      0,
      { .told = 1, .handed = 1, .phantom = 1, .lost = 1 } },
    { "refused",
      ADD("1", "5", "refuse", "DUE_ENOSPC -"),
      OUT_1("2000"),
      0,
      { .handed = 1, .phantom = 1 } },
    { "in doubt", ADD("1", "5", "refuse", "DUE_EINDOUBT id1"), OUT_1("2000"), 0, { .handed = 1 } },
    { "unknown", "", OUT_1("2000"), 0, { .handed = 1, .phantom = 1 } },
    { "other bytes",
      PUT("1", "5"),
      "1 5 reserve? 9\n1 2000 reserve! DUE_OK 1 id1 0 0 0\n",
      0,
      { .told = 1, .handed = 1, .phantom = 1, .lost = 1 } },
    { "out of order",
      PUT("1", "500") PUT("2", "400"),
      OUT_1("2000") OUT("2", "id2", "2001"),
      0,
      { .told = 2, .handed = 2, .disorder = 1 } },
    { "behind others after a dequeue in doubt",
      PUT("1", "500") PUT("2", "400"),
      "1 1500 dequeue?\n1 1999 dequeue! DUE_EINDOUBT\n" OUT_1("2000") OUT("2", "id2", "2001"),
      0,
      { .told = 2, .handed = 2 } },
    { "not confirmed", PUT("1", "5"), "", ASYNC, { .told = 0 } },
    { "confirmed by a flush", PUT("1", "5") FLUSH, "", ASYNC, { .told = 1, .lost = 1 } },
    { "refused later",
      PUT("1", "5") "0 3 settled id1 DUE_ENOSPC\n" FLUSH,
      "",
      ASYNC,
      { .told = 0 } },

    /* Removals by name. */
    { "cancelled",
      PUT("1", "5") SAYS("cancel", "DUE_OK"),
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 1, .doubled = 1 } },
    { "cancelled, in doubt", PUT("1", "5") SAYS("cancel", "DUE_EINDOUBT"), "", 0, { .told = 1 } },
    { "not cancelled",
      PUT("1", "5") SAYS("cancel", "DUE_ETIMEDOUT"),
      "",
      0,
      { .told = 1, .lost = 1 } },
    { "cancelled while somebody has it",
      PUT("1", "5") SAYS("cancel", "DUE_EBUSY"),
      "",
      0,
      { .told = 1 } },
    { "back again",
      PUT("1", "5") SAYS("cancel", "DUE_OK"),
      OUT_1("2000"),
      RISK,
      { .told = 1, .handed = 1, .returned = 1 } },

    /* Another time. */
    { "early", PUT("1", "3000"), OUT_1("2999"), 0, { .told = 1, .handed = 1, .early = 1 } },
    { "early after a move",
      PUT("1", "30") "1 5 move? id1 4000\n1 6 move! id1 DUE_OK\n",
      OUT_1("3999"),
      0,
      { .told = 1, .handed = 1, .early = 1 } },
    { "after a move",
      PUT("1", "5000") "1 5 move? id1 4000\n1 6 move! id1 DUE_OK\n",
      OUT_1("4000"),
      0,
      { .told = 1, .handed = 1 } },
    { "before both times of a move in doubt",
      PUT("1", "5000") "1 5 move? id1 4000\n",
      OUT_1("3999"),
      0,
      { .told = 1, .handed = 1, .early = 1 } },
    { "at the first time of a move in doubt",
      PUT("1", "3000") "1 5 move? id1 4000\n",
      OUT_1("3000"),
      0,
      { .told = 1, .handed = 1 } },
    { "at the second",
      PUT("1", "5000") "1 5 move? id1 4000\n",
      OUT_1("4000"),
      0,
      { .told = 1, .handed = 1 } },
    { "at the time of a move that was refused",
      PUT("1", "5000") "1 5 move? id1 4000\n1 6 move! id1 DUE_ETIMEDOUT\n",
      OUT_1("4000"),
      0,
      { .told = 1, .handed = 1, .early = 1 } },
    { "early after a nack",
      PUT("1", "5") HAS("1", "id1") "2 8 nack? id1 4000\n2 9 nack! id1 DUE_OK\n",
      OUT_1("2999"),
      0,
      { .told = 1, .handed = 2, .early = 1 } },

    /* Other content. */
    { "updated",
      PUT("1", "5") UPDATE("2", "DUE_OK"),
      OUT("2", "id1", "2000"),
      0,
      { .told = 1, .handed = 1 } },
    { "as before an update",
      PUT("1", "5") UPDATE("2", "DUE_OK"),
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 1, .stale = 1 } },
    { "as before the second update",
      PUT("1", "5") UPDATE("2", "DUE_OK") UPDATE("3", "DUE_OK"),
      OUT("2", "id1", "2000"),
      0,
      { .told = 1, .handed = 1, .stale = 1 } },
    { "updated and lost", PUT("1", "5") UPDATE("2", "DUE_OK"), "", 0, { .told = 1, .lost = 1 } },
    { "old after an update in doubt",
      PUT("1", "5") "2 6 update? id1 2\n",
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 1 } },
    { "new after an update in doubt",
      PUT("1", "5") "2 6 update? id1 2\n",
      OUT("2", "id1", "2000"),
      0,
      { .told = 1, .handed = 1 } },
    { "first one, then the other",
      PUT("1", "5") "2 6 update? id1 2\n",
      "2 1500 reserve? 9\n2 1500 reserve! DUE_OK 1 id1 0 0 1\n" OUT("2", "id1", "2000"),
      0,
      { .told = 1, .handed = 2, .stale = 1, .disorder = 1 } },
    { "by an update that was refused",
      PUT("1", "5") UPDATE("2", "DUE_EBUSY"),
      OUT("2", "id1", "2000"),
      0,
      { .told = 1, .handed = 1, .phantom = 1 } },
    { "old after an update that waits for its flush",
      PUT("1", "5") FLUSH UPDATE("2", "DUE_OK"),
      OUT_1("2000"),
      ASYNC,
      { .told = 1, .handed = 1 } },
    { "old after its flush",
      PUT("1", "5") UPDATE("2", "DUE_OK") FLUSH,
      OUT_1("2000"),
      ASYNC,
      { .told = 1, .handed = 1, .stale = 1 } },
    { "old after a kill that was allowed to",
      PUT("1", "5") UPDATE("2", "DUE_OK"),
      OUT_1("2000"),
      RISK,
      { .told = 1, .handed = 1 } },

    /* Dead. */
    { "buried, listed and kicked",
      BURIED,
      LIST(DEAD_1) KICK_1 OUT_1("2000"),
      0,
      { .told = 1, .handed = 2 } },
    { "buried and handed out", BURIED, OUT_1("2000"), 0, { .told = 1, .handed = 2, .risen = 1 } },
    { "buried and not listed", BURIED, LIST(""), 0, { .told = 1, .handed = 1, .lost = 1 } },
    { "handed out after a burial in doubt",
      PUT("1", "5") HAS("1", "id1") "2 8 bury? id1\n",
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 2 } },
    { "listed after a burial in doubt",
      PUT("1", "5") HAS("1", "id1") "2 8 bury? id1\n",
      LIST(DEAD_1) KICK_1 OUT_1("2000"),
      0,
      { .told = 1, .handed = 2 } },
    { "not buried, and listed",
      PUT("1", "5") HAS("1", "id1") SAYS("bury", "DUE_ESTALE"),
      LIST(DEAD_1) KICK_1 OUT_1("2000"),
      0,
      { .told = 1, .handed = 2, .risen = 1 } },
    { "never buried, and listed",
      PUT("1", "5"),
      LIST(DEAD_1) KICK_1 OUT_1("2000"),
      0,
      { .told = 1, .handed = 1, .risen = 1 } },
    { "kicked and handed out",
      BURIED SAYS("kick", "DUE_OK"),
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 2 } },
    { "kicked and listed",
      BURIED SAYS("kick", "DUE_OK"),
      LIST(DEAD_1),
      0,
      { .told = 1, .handed = 1, .risen = 1, .lost = 1 } },
    { "listed after a kick in doubt",
      BURIED "2 8 kick? id1\n",
      LIST(DEAD_1) KICK_1 OUT_1("2000"),
      0,
      { .told = 1, .handed = 2 } },
    { "listed after its ack",
      PUT("1", "5") HAS("1", "id1") SAYS("ack", "DUE_OK"),
      LIST(DEAD_1),
      0,
      { .told = 1, .handed = 1, .risen = 1 } },
    { "listed by an unknown id", "", LIST(DEAD_1), 0, { .phantom = 1 } },
    { "buried, and not confirmed",
      PUT("1", "5") FLUSH HAS("1", "id1") SAYS("bury", "DUE_OK"),
      OUT_1("2000"),
      ASYNC,
      { .told = 1, .handed = 2 } },

    /* Unique keys: refused. */
    { "refused for one that lives",
      KEYED("1", "5") ADD("2", "5", "refuse", "DUE_EEXIST id1"),
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 1 } },
    { "refused, and handed out",
      KEYED("1", "5") ADD("2", "5", "refuse", "DUE_EEXIST id1"),
      OUT_1("2000") OUT("2", "id2", "2000"),
      0,
      { .told = 1, .handed = 2, .phantom = 1, .keys = 1 } },
    { "two of a key",
      KEYED("1", "5") KEYED("2", "6"),
      OUT_1("2000") OUT("2", "id2", "2000"),
      0,
      { .told = 2, .handed = 2, .keys = 2 } },
    { "two of a key, the first dead",
      KEYED("1", "5") HAS("1", "id1") SAYS("bury", "DUE_OK") KEYED("2", "6") SAYS("kick", "DUE_OK"),
      OUT_1("2000") OUT("2", "id2", "2000"),
      0,
      { .told = 2, .handed = 3, .keys = 2 } },
    { "one after the other",
      KEYED("1", "5") SAYS("cancel", "DUE_OK") KEYED("2", "6"),
      OUT("2", "id2", "2000"),
      0,
      { .told = 2, .handed = 1 } },
    { "enqueued while a removal is in doubt",
      KEYED("1", "5") SAYS("cancel", "DUE_EINDOUBT") KEYED("2", "6"),
      OUT("2", "id2", "2000"),
      0,
      { .told = 2, .handed = 1 } },
    { "had after the restart, and not refused",
      KEYED("1", "5"),
      KEYED("2", "6") OUT_1("2000") OUT("2", "id2", "2000"),
      0,
      { .told = 2, .handed = 2, .keys = 1 } },
    { "had after the restart, and found free",
      KEYED("1", "5"),
      FIND("DUE_ENOENT -") OUT_1("2000"),
      0,
      { .told = 1, .handed = 1, .keys = 1 } },
    { "found after the restart",
      KEYED("1", "5"),
      FIND("DUE_OK id1") OUT_1("2000"),
      0,
      { .told = 1, .handed = 1 } },
    { "refused for one that was gone",
      KEYED("1", "5") SAYS("cancel", "DUE_OK") ADD("2", "5", "refuse", "DUE_EEXIST id1"),
      "",
      0,
      { .told = 1, .keys = 1 } },
    { "found after the restart, though it was gone",
      KEYED("1", "5") SAYS("cancel", "DUE_OK"),
      FIND("DUE_OK id1"),
      0,
      { .told = 1, .keys = 1 } },
    { "refused for one of another key",
      PUT("1", "5") ADD("2", "5", "refuse", "DUE_EEXIST id1"),
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 1, .keys = 1 } },
    { "refused for nobody", ADD("2", "5", "refuse", "DUE_EEXIST id1"), "", 0, { .keys = 1 } },
    { "refused for one that was not told its id",
      "3 1 enqueue? 1 5 0 0 7 refuse\n" ADD("2", "5", "refuse", "DUE_EEXIST id1"),
      OUT_1("2000"),
      0,
      { .handed = 1 } },

    /* And replaced. */
    { "replaced",
      KEYED("1", "5") ADD("2", "3000", "replace", "DUE_OK id1"),
      OUT("2", "id1", "3000"),
      0,
      { .told = 2, .handed = 1 } },
    { "replaced, and as before",
      KEYED("1", "5") ADD("2", "5", "replace", "DUE_OK id1"),
      OUT_1("2000"),
      0,
      { .told = 2, .handed = 1, .stale = 1 } },
    { "replaced, and early",
      KEYED("1", "5") ADD("2", "3000", "replace", "DUE_OK id1"),
      OUT("2", "id1", "2999"),
      0,
      { .told = 2, .handed = 1, .early = 1 } },
    { "replaced, and lost",
      KEYED("1", "5") ADD("2", "5", "replace", "DUE_OK id1"),
      "",
      0,
      { .told = 2, .lost = 1 } },
    { "old after a replacement in doubt",
      KEYED("1", "5") ASK("2", "3000", "replace"),
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 1 } },
    { "new after a replacement in doubt",
      KEYED("1", "5") ASK("2", "3000", "replace"),
      OUT("2", "id1", "3000"),
      0,
      { .told = 1, .handed = 1 } },
    { "both after a replacement in doubt",
      KEYED("1", "5") ASK("2", "1800", "replace"),
      OUT_1("2000") OUT("2", "id2", "2000"),
      0,
      { .told = 1, .handed = 2, .keys = 1 } },
    { "neither after a replacement in doubt",
      KEYED("1", "5") ASK("2", "3000", "replace"),
      "",
      0,
      { .told = 1, .lost = 1 } },
    { "beside one that nobody has",
      KEYED("1", "900") ADD("2", "5", "replace", "DUE_OK id2"),
      OUT("1", "id1", "2000") OUT("2", "id2", "2000"),
      0,
      { .told = 2, .handed = 2, .keys = 2 } },
    { "the key of one that is out is taken over",
      KEYED("1", "5") HAS("1", "id1") ADD("2", "5", "replace", "DUE_OK id2"),
      OUT_1("2000") OUT("2", "id2", "2000"),
      0,
      { .told = 2, .handed = 3 } },
    { "refused for one whose key was taken over",
      KEYED("1", "5") HAS("1", "id1") ADD("2", "5", "replace", "DUE_OK id2"),
      FIND("DUE_OK id1") OUT_1("2000") OUT("2", "id2", "2000"),
      0,
      { .told = 2, .handed = 3, .keys = 1 } },
    { "one that was gone is replaced",
      KEYED("1", "5") SAYS("cancel", "DUE_OK") ADD("2", "5", "replace", "DUE_OK id1"),
      "",
      0,
      { .told = 2, .keys = 1 } },
    { "a dead one is replaced, and waits again",
      KEYED("1", "5") HAS("1", "id1") SAYS("bury", "DUE_OK") ADD("2", "5", "replace", "DUE_OK id1"),
      OUT("2", "id1", "2000"),
      0,
      { .told = 2, .handed = 2 } },
    { "replaced before its own answer",
      "3 1 enqueue? 1 5 0 0 7 refuse\n" ADD("2", "5", "replace",
                                            "DUE_OK id1") "3 8 enqueue! 1 DUE_OK id1\n",
      OUT("2", "id1", "2000"),
      0,
      { .told = 2, .handed = 1 } },
    { "the same, asked for later",
      ASK("2", "5", "replace") "3 1 enqueue? 1 5 0 0 7 refuse\n1 2 enqueue! 2 DUE_OK id1\n"
                               "3 8 enqueue! 1 DUE_OK id1\n",
      OUT("2", "id1", "2000"),
      0,
      { .told = 2, .handed = 1 } },
    { "enqueued as another",
      KEYED("1", "5") ADD("2", "5", "refuse", "DUE_OK id1"),
      OUT_1("2000"),
      0,
      { .told = 1, .handed = 1, .phantom = 1 } },
    { "one that was told no id is replaced",
      "3 1 enqueue? 1 5 0 0 7 refuse\n" ADD("2", "5", "replace", "DUE_OK id1"),
      OUT("2", "id1", "2000"),
      0,
      { .told = 1, .handed = 1 } },
};

static void read_lines(struct ledger *l, const char *text)
{
    char line[256];

    for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        ledger_line(l, line);
    }
}

static void show(const char *what, struct ledger_verdict v)
{
    printf(
        "  %s: told %d, handed %d, lost %d, doubled %d, early %d, disorder %d, phantom %d, stale "
        "%d, risen %d, keys %d, excused %d, missing %d, returned %d\n",
        what, (int)v.told, (int)v.handed, (int)v.lost, (int)v.doubled, (int)v.early,
        (int)v.disorder, (int)v.phantom, (int)v.stale, (int)v.risen, (int)v.keys, (int)v.excused,
        (int)v.missing, (int)v.returned);
}

int main(void)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        const struct script *s = &scripts[i];
        struct ledger *l = ledger_new();

        printf("%s\n", s->name);
        ledger_life(l, (s->how & ASYNC) != 0, false);
        read_lines(l, s->first);
        ledger_death(l, 1000);
        if (s->how & RISK)
            ledger_risk(l);
        ledger_life(l, false, true);
        read_lines(l, s->second);
        ledger_death(l, 9000);
        ledger_balance(l);
        struct ledger_verdict is = ledger_verdict(l);
        if (memcmp(&is, &s->want, sizeof is) != 0) {
            show("WRONG", is);
            show("not", s->want);
            wrong++;
        }
        ledger_free(l);
    }
    printf("%zu scripts, %u wrong\n", sizeof scripts / sizeof scripts[0], wrong);
    return wrong > 0;
}
