/* ledger_test.c - the checker itself: each kind of fault, planted in lines, must be found. */
#include <stdio.h>
#include <string.h>

#include "lab/crew.h"
#include "scripts.h"

static const struct script scripts[] = {
    { "all is well", PUT("1", "500"), OUT_1("2000"), 0, { .told = 1, .handed = 1 } },
    { "lost", PUT("1", "500"), "", 0, { .told = 1, .lost = 1 } },
    { "at risk", PUT("1", "500"), "", RISK, { .told = 1, .missing = 1 } },
    { "cut short", PUT("1", "500") "2 600 dequeue?\n", "", 0, { .told = 1, .excused = 1 } },
    { "in doubt, and lent again before it was known",
      PUT("1", "5") "3 600 dequeue?\n3 600 dequeue! DUE_EINDOUBT id1\n" HELD,
      "",
      0,
      { .told = 1, .handed = 1 } },
    { "acked before another took it over, and told so later",
      PUT("1", "5") HELD "2 600 ack? id1\n",
      "2 1200 ack! id1 DUE_OK\n",
      TAKEN,
      { .told = 1, .handed = 1 } },
    { "had by both",
      PUT("1", "5") "2 600 dequeue?\n",
      "1 1100 reserve? 5000\n1 1150 reserve! DUE_OK 1 id1 0 0 1\n"
      "2 1200 dequeue! DUE_OK 1 id1 0 0 1\n",
      TAKEN,
      { .told = 1, .handed = 2, .doubled = 1 } },
    { "leased by the one, then by the other",
      PUT("1", "5") HELD,
      OUT_1("2000"),
      TAKEN,
      { .told = 1, .handed = 2 } },
    { "refused by the one, and had by the other",
      BARE("1", "5"),
      "1 1100 enqueue! 1 DUE_EFENCED -\n" OUT_1("2000"),
      TAKEN,
      { .told = 0, .handed = 1, .phantom = 1 } },
    { "taken over, and lost",
      PUT("1", "5") HELD "2 600 ack? id1\n",
      "2 1200 ack! id1 DUE_EFENCED\n",
      TAKEN,
      { .told = 1, .handed = 1, .lost = 1 } },
    { "another one in doubt",
      PUT("1", "5") PUT("2", "5") "3 600 dequeue?\n3 600 dequeue! DUE_EINDOUBT id2\n",
      "",
      0,
      { .told = 2, .lost = 1 } },
    { "reserved when it was cut short",
      PUT("1", "5") HELD "3 600 dequeue?\n",
      "",
      0,
      { .told = 1, .handed = 1, .lost = 1 } },
    { "reserved while it was cut short",
      PUT("1", "5") "3 5 dequeue?\n" HELD,
      "",
      0,
      { .told = 1, .handed = 1, .lost = 1 } },
    { "reserved, and its lease over when it was cut short",
      PUT("1", "5") HAS("1", "id1") "3 600 dequeue?\n",
      "",
      0,
      { .told = 1, .handed = 1, .excused = 1 } },
    { "reserved, given back and cut short",
      PUT("1", "5") HELD "2 8 nack? id1 1\n2 9 nack! id1 DUE_OK\n3 600 dequeue?\n",
      "",
      0,
      { .told = 1, .handed = 1, .excused = 1 } },
    { "reserved after a dequeue in doubt",
      PUT("1", "5") "3 6 dequeue?\n3 7 dequeue! DUE_EINDOUBT\n" HELD,
      "",
      0,
      { .told = 1, .handed = 1, .lost = 1 } },
    { "reserved when a dequeue ended in doubt, and acked in doubt",
      PUT("1", "5") HELD "3 6 dequeue?\n3 7 dequeue! DUE_EINDOUBT\n2 9 ack? id1\n",
      "",
      0,
      { .told = 1, .handed = 1 } },
    { "dead when it was cut short",
      BURIED "3 600 dequeue?\n",
      "",
      0,
      { .told = 1, .handed = 1, .lost = 1 } },
    { "after a dequeue that changed nothing",
      PUT("1", "5") "2 6 dequeue?\n2 7 dequeue! DUE_ESTORE\n",
      "",
      0,
      { .told = 1, .lost = 1 } },
    { "two, and one was cut short",
      PUT("1", "5") HELD PUT("2", "5") "3 600 dequeue?\n",
      "",
      0,
      { .told = 2, .handed = 1, .lost = 1, .excused = 1 } },
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
    { "mortal, and listed",
      PUT("1", "5") "1 3 mortal 1\n",
      LIST(DEAD_1) KICK_1 OUT_1("2000"),
      0,
      { .told = 1, .handed = 1 } },
    { "mortal, and gone before it was listed",
      PUT("1", "5") "1 3 mortal 1\n" HAS("1", "id1") SAYS("ack", "DUE_OK"),
      LIST(DEAD_1),
      0,
      { .told = 1, .handed = 1, .risen = 1 } },
    { "one that is mortal was told no id, and another id is listed",
      BARE("1", "5") "1 3 mortal 1\n",
      LIST("1 1600 dead id9\n"),
      0,
      { .told = 0 } },
    { "none is mortal, and an id that nobody was told is listed",
      BARE("1", "5"),
      LIST("1 1600 dead id9\n"),
      0,
      { .phantom = 1 } },
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

/* Answers how many it judges otherwise than they should be. */
static unsigned judge_all(const struct script *all, size_t n)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < n; i++) {
        const struct script *s = &all[i];
        struct ledger *l = ledger_new();

        printf("%s\n", s->name);
        ledger_life(l, (s->how & ASYNC) != 0, false);
        read_lines(l, s->first);
        if (s->how & TAKEN)
            ledger_takeover(l, false, 1000);
        else
            ledger_death(l, 1000);
        if (s->how & RISK)
            ledger_risk(l);
        if (s->how & HALF)
            ledger_half(l);
        if (!(s->how & TAKEN))
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
    return wrong;
}

int main(void)
{
    size_t n = sizeof scripts / sizeof scripts[0];
    unsigned wrong = judge_all(scripts, n) + judge_all(key_scripts, key_scripts_n);

    printf("%zu scripts, %u wrong\n", n + key_scripts_n, wrong);
    return wrong > 0;
}
