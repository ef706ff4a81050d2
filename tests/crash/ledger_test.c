/* ledger_test.c - the checker itself: each kind of fault, planted in lines, must be found. */
#include <stdio.h>
#include <string.h>

#include "crew.h"
#include "ledger.h"

struct script {
    const char *name;
    const char *first;  /* lines of a life that is killed at 1000 */
    const char *second; /* of the life that takes everything out */
    struct ledger_verdict want;
    bool async;
    bool risk;
};

#define PUT(n, at) "1 1 enqueue? " n " " at " 0 0\n1 2 enqueue! " n " DUE_OK id" n "\n"
#define OUT_1(t)   "1 1500 dequeue?\n1 " t " dequeue! DUE_OK 1 0 0 1\n"

static const struct script scripts[] = {
    { "all is well", PUT("1", "500"), OUT_1("2000"), { .told = 1, .handed = 1 }, false, false },
    { "lost", PUT("1", "500"), "", { .told = 1, .lost = 1 }, false, false },
    { "at risk", PUT("1", "500"), "", { .told = 1, .missing = 1 }, false, true },
    { "cut short",
      PUT("1", "500") "2 600 dequeue?\n",
      "",
      { .told = 1, .excused = 1 },
      false,
      false },
    { "not due when it was cut short",
      PUT("1", "1500") "2 600 dequeue?\n",
      "",
      { .told = 1, .lost = 1 },
      false,
      false },
    { "doubled",
      PUT("1", "5") "2 6 dequeue?\n2 7 dequeue! DUE_OK 1 0 0 1\n",
      OUT_1("2000"),
      { .told = 1, .handed = 2, .doubled = 1 },
      false,
      false },
    { "after its ack",
      PUT("1", "5") "2 6 reserve? 90\n2 7 reserve! DUE_OK 1 0 0 1\n"
                    "2 8 ack? 1\n2 9 ack! 1 DUE_OK\n",
      OUT_1("2000"),
      { .told = 1, .handed = 2, .doubled = 1 },
      false,
      false },
    { "reserved and not acked",
      PUT("1", "5") "2 6 reserve? 90\n2 7 reserve! DUE_OK 1 0 0 1\n"
                    "2 8 ack? 1\n",
      OUT_1("2000"),
      { .told = 1, .handed = 2 },
      false,
      false },
    { "leased twice",
      PUT("1", "5") "2 6 reserve? 90\n2 7 reserve! DUE_OK 1 0 0 1\n"
                    "3 8 reserve? 90\n3 9 reserve! DUE_OK 1 0 0 1\n",
      OUT_1("2000"),
      { .told = 1, .handed = 3, .doubled = 1 },
      false,
      false },
    { "early",
      PUT("1", "3000"),
      OUT_1("2999"),
      { .told = 1, .handed = 1, .early = 1 },
      false,
      false },
    { "early after a move",
      PUT("1", "30") "1 5 move? 1 4000\n1 6 move! 1 DUE_OK\n",
      OUT_1("2999"),
      { .told = 1, .handed = 1, .early = 1 },
      false,
      false },
    { "early after a nack",
      PUT("1", "5") "2 6 reserve? 90\n2 7 reserve! DUE_OK 1 0 0 1\n"
                    "2 8 nack? 1 4000\n2 9 nack! 1 DUE_OK\n",
      OUT_1("2999"),
      { .told = 1, .handed = 2, .early = 1 },
      false,
      false },
    { "cancelled",
      PUT("1", "5") "1 8 cancel? 1\n1 9 cancel! 1 DUE_OK\n",
      OUT_1("2000"),
      { .told = 1, .handed = 1, .doubled = 1 },
      false,
      false },
    { "cancelled, in doubt",
      PUT("1", "5") "1 8 cancel? 1\n1 9 cancel! 1 DUE_EINDOUBT\n",
      "",
      { .told = 1 },
      false,
      false },
    { "not cancelled",
      PUT("1", "5") "1 8 cancel? 1\n1 9 cancel! 1 DUE_ETIMEDOUT\n",
      "",
      { .told = 1, .lost = 1 },
      false,
      false },
    { "cancelled while somebody has it",
      PUT("1", "5") "1 8 cancel? 1\n1 9 cancel! 1 DUE_EBUSY\n",
      "",
      { .told = 1 },
      false,
      false },
    { "refused",
      "1 1 enqueue? 1 5 0 0\n1 2 enqueue! 1 DUE_ENOSPC id1\n",
      OUT_1("2000"),
      { .handed = 1, .phantom = 1 },
      false,
      false },
    { "in doubt",
      "1 1 enqueue? 1 5 0 0\n1 2 enqueue! 1 DUE_EINDOUBT id1\n",
      OUT_1("2000"),
      { .handed = 1 },
      false,
      false },
    { "unknown", "", OUT_1("2000"), { .handed = 1, .phantom = 1 }, false, false },
    { "other bytes",
      PUT("1", "5"),
      "1 5 reserve? 9\n1 2000 reserve! DUE_OK 1 0 0 0\n",
      { .told = 1, .handed = 1, .phantom = 1, .lost = 1 },
      false,
      false },
    { "out of order",
      PUT("1", "500") PUT("2", "400"),
      OUT_1("2000") "1 1501 dequeue?\n1 2001 dequeue! DUE_OK 2 0 0 1\n",
      { .told = 2, .handed = 2, .disorder = 1 },
      false,
      false },
    { "behind others after a dequeue in doubt",
      PUT("1", "500") PUT("2", "400"),
      "1 1500 dequeue?\n1 1999 dequeue! DUE_EINDOUBT\n" OUT_1(
          "2000") "1 1501 dequeue?\n1 2001 dequeue! DUE_OK 2 0 0 1\n",
      { .told = 2, .handed = 2 },
      false,
      false },
    { "not confirmed", PUT("1", "5"), "", { .told = 0 }, true, false },
    { "confirmed by a flush",
      PUT("1", "5") "3 4 flush?\n3 5 flush! DUE_OK\n",
      "",
      { .told = 1, .lost = 1 },
      true,
      false },
    { "refused later",
      PUT("1", "5") "0 3 settled id1 DUE_ENOSPC\n3 4 flush?\n3 5 flush! DUE_OK\n",
      "",
      { .told = 0 },
      true,
      false },
    { "back again",
      PUT("1", "5") "1 8 cancel? 1\n1 9 cancel! 1 DUE_OK\n",
      OUT_1("2000"),
      { .told = 1, .handed = 1, .returned = 1 },
      false,
      true },
};

static void read_lines(struct ledger *l, const char *text)
{
    char line[256];

    for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
        ledger_line(l, line);
    }
}

static bool same(struct ledger_verdict a, struct ledger_verdict b)
{
    return a.told == b.told && a.handed == b.handed && a.lost == b.lost && a.doubled == b.doubled &&
           a.early == b.early && a.disorder == b.disorder && a.phantom == b.phantom &&
           a.excused == b.excused && a.missing == b.missing && a.returned == b.returned;
}

int main(void)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        const struct script *s = &scripts[i];
        struct ledger *l = ledger_new();

        printf("%s\n", s->name);
        ledger_life(l, s->async, false);
        read_lines(l, s->first);
        ledger_death(l, 1000);
        if (s->risk)
            ledger_risk(l);
        ledger_life(l, false, true);
        read_lines(l, s->second);
        ledger_death(l, 9000);
        ledger_balance(l);
        if (!same(ledger_verdict(l), s->want)) {
            printf("  WRONG\n");
            wrong++;
        }
        ledger_free(l);
    }
    printf("%zu scripts, %u wrong\n", sizeof scripts / sizeof scripts[0], wrong);
    return wrong > 0;
}
