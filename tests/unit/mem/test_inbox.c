/* The inbox by itself: what was put is taken in that order, who knocked is heard, and what is known
 * of the times of what is in it. */
#include <criterion/criterion.h>

#include "mem/inbox.h"

enum { NODES = 4 };

struct box {
    struct due__inbox in;
    struct cds_wfcq_node node[NODES];
    size_t next; /* to be put */
};

static void box_put(struct box *b)
{
    due__inbox_put(&b->in, &b->node[b->next++]);
}

/* A drain of up to @max nodes, which are to be those from @first on; how many. */
static size_t box_drain(struct box *b, size_t first, size_t max)
{
    enum due__inbox_found found = DUE__INBOX_NODE;
    struct cds_wfcq_node *node;
    size_t n = 0;

    due__inbox_answer(&b->in);
    for (; n < max; n++) {
        found = due__inbox_take(&b->in, &node);
        if (found != DUE__INBOX_NODE)
            break;
        cr_assert_eq(node, &b->node[first + n]);
    }
    due__inbox_answered(&b->in, found);
    return n;
}

Test(inbox, is_quiet_when_all_was_taken)
{
    struct box b = { .next = 0 };

    due__inbox_init(&b.in);
    cr_expect(due__inbox_quiet(&b.in));
    cr_expect_not(due__inbox_knocked(&b.in));
    box_put(&b);
    box_put(&b);
    cr_expect(due__inbox_knocked(&b.in));
    cr_expect_not(due__inbox_quiet(&b.in));
    cr_expect_eq(box_drain(&b, 0, NODES), 2u);
    cr_expect(due__inbox_quiet(&b.in));
    cr_expect_not(due__inbox_knocked(&b.in));
}

Test(inbox, is_knocked_for_what_a_drain_leaves)
{
    struct box b = { .next = 0 };

    due__inbox_init(&b.in);
    box_put(&b);
    box_put(&b);
    cr_expect_eq(box_drain(&b, 0, 1), 1u);
    cr_expect(due__inbox_knocked(&b.in));
    cr_expect_eq(box_drain(&b, 1, 1), 1u); /* it has not seen that this was the last */
    cr_expect(due__inbox_knocked(&b.in));
    cr_expect_eq(box_drain(&b, 2, 1), 0u);
    cr_expect(due__inbox_quiet(&b.in));
}

Test(inbox, hears_who_knocks_while_it_is_drained)
{
    struct box b = { .next = 0 };
    struct cds_wfcq_node *node;

    due__inbox_init(&b.in);
    box_put(&b);
    due__inbox_answer(&b.in);
    cr_expect_not(due__inbox_knocked(&b.in));
    cr_expect_not(due__inbox_quiet(&b.in), "nothing is sorted in yet");
    cr_expect_eq(due__inbox_take(&b.in, &node), DUE__INBOX_NODE);
    cr_expect_eq(due__inbox_take(&b.in, &node), DUE__INBOX_EMPTY);
    box_put(&b);
    due__inbox_answered(&b.in, DUE__INBOX_EMPTY);
    cr_expect(due__inbox_knocked(&b.in));
    cr_expect_eq(box_drain(&b, 1, NODES), 1u);
    cr_expect(due__inbox_quiet(&b.in));
}

Test(inbox, is_late_until_a_drain_that_began_after_it_has_ended)
{
    struct box b = { .next = 0 };

    due__inbox_init(&b.in);
    cr_expect_not(due__inbox_late(&b.in));
    box_put(&b);
    cr_expect_not(due__inbox_late(&b.in));
    box_put(&b);
    due__inbox_say_late(&b.in);
    cr_expect_eq(box_drain(&b, 0, 1), 1u);
    cr_expect(due__inbox_late(&b.in), "one is left");
    due__inbox_answer(&b.in);
    due__inbox_say_late(&b.in);
    due__inbox_answered(&b.in, DUE__INBOX_EMPTY);
    cr_expect(due__inbox_late(&b.in), "it was said again meanwhile");
    cr_expect_eq(box_drain(&b, 1, NODES), 1u);
    cr_expect_not(due__inbox_late(&b.in));
}

/* N1 of inbox.c, first way */
Test(inbox, was_put_after_what_had_left_when_it_was_empty)
{
    struct box b = { .next = 0 };

    due__inbox_init(&b.in);
    cr_expect_eq(b.in.after_ns, -1);
    due__inbox_note(&b.in, 5);
    cr_expect_eq(b.in.after_ns, 5);
    due__inbox_note(&b.in, 4);
    cr_expect_eq(b.in.after_ns, 5);
    box_put(&b);
    box_put(&b);
    cr_expect_eq(box_drain(&b, 0, 1), 1u);
    due__inbox_note(&b.in, 9); /* the other one may be older */
    cr_expect_eq(b.in.after_ns, 5);
    cr_expect_eq(box_drain(&b, 1, NODES), 1u);
    due__inbox_note(&b.in, 9);
    cr_expect_eq(b.in.after_ns, 9);
}

/* N1 of inbox.c, second way: not before the last one that was there then has been taken */
Test(inbox, was_put_after_the_mark_that_has_been_passed)
{
    struct box b = { .next = 0 };

    due__inbox_init(&b.in);
    for (int i = 0; i < 3; i++)
        box_put(&b);
    due__inbox_mark(&b.in, 10);
    cr_expect_eq(box_drain(&b, 0, 1), 1u);
    cr_expect_eq(b.in.after_ns, -1, "two from before are left");
    box_put(&b);
    due__inbox_mark(&b.in, 20); /* there is one that stands */
    cr_expect_eq(box_drain(&b, 1, 1), 1u);
    cr_expect_eq(b.in.after_ns, -1, "one from before is left");
    cr_expect_eq(box_drain(&b, 2, 1), 1u);
    cr_expect_eq(b.in.after_ns, 10);
    due__inbox_mark(&b.in, 20);
    cr_expect_eq(box_drain(&b, 3, NODES), 1u);
    cr_expect_eq(b.in.after_ns, 20, "all was taken");
    due__inbox_mark(&b.in, 15); /* a clock that was read before */
    cr_expect_eq(box_drain(&b, 4, NODES), 0u);
    cr_expect_eq(b.in.after_ns, 20);
}
