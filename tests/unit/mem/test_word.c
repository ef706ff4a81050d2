/* The word of a job: which changes of it there are, and that no other is made where asserts are. */
#include "lab/lab.h"

#include <signal.h>

#include "mem/word.h"

#define USE 7u

static uint64_t word(enum due__state state, uint64_t flags)
{
    return due__word(USE, 5, flags | state);
}

Test(word, may_become_what_the_table_says)
{
    cr_expect(due__word_may(word(DUE__WAITING, DUE__READY), word(DUE__CLAIMED, 0)));
    cr_expect(due__word_may(word(DUE__CLAIMED, 0), due__word(USE + 1, 0, DUE__FREE)));
    cr_expect(due__word_may(word(DUE__DEAD, DUE__HELD), word(DUE__CLAIMED, DUE__HELD)));
}

Test(word, may_go_to_no_other_state)
{
    cr_expect_not(due__word_may(word(DUE__CLAIMED, 0), word(DUE__MOVING, 0)));
    cr_expect_not(due__word_may(word(DUE__DEAD, 0), word(DUE__WAITING, 0)));
    cr_expect_not(due__word_may(word(DUE__DONE, 0), word(DUE__CLAIMED, 0)));
}

Test(word, may_change_no_other_flag)
{
    cr_expect_not(due__word_may(word(DUE__WAITING, 0), word(DUE__CLAIMED, DUE__READY)));
    cr_expect_not(due__word_may(word(DUE__WAITING, DUE__HELD), word(DUE__CLAIMED, 0)));
    cr_expect_not(due__word_may(word(DUE__CLAIMED, 0), word(DUE__CLAIMED, DUE__LINKED)));
}

Test(word, may_have_another_stamp_only_where_another_slot_stands_for_the_job)
{
    uint64_t later = due__word(USE, 6, DUE__WAITING);

    cr_expect(due__word_may(word(DUE__WAITING, 0), later));
    cr_expect_not(due__word_may(word(DUE__WAITING, 0), due__word_as(later, DUE__CLAIMED)));
}

Test(word, may_skip_no_use_of_its_place)
{
    cr_expect_not(due__word_may(word(DUE__CLAIMED, 0), due__word(USE + 2, 0, DUE__FREE)));
    cr_expect_not(due__word_may(word(DUE__CLAIMED, 0), due__word(USE - 1, 0, DUE__FREE)));
    cr_expect_not(due__word_may(word(DUE__CLAIMED, 0), due__word(USE + 1, 0, DUE__WAITING)));
}

Test(word, is_swapped_only_if_it_is_as_it_was_seen)
{
    uint64_t shared = word(DUE__WAITING, 0);
    uint64_t seen = word(DUE__WAITING, DUE__READY);

    cr_expect_not(due__word_claim(&shared, &seen, DUE__CLAIMED));
    cr_expect_eq(seen, word(DUE__WAITING, 0));
    cr_expect(due__word_claim(&shared, &seen, DUE__CLAIMED));
    cr_expect_eq(seen, word(DUE__WAITING, 0));
    cr_expect_eq(shared, word(DUE__CLAIMED, 0));
}

Test(word, has_no_use_after_the_last)
{
    uint64_t shared = due__word(UINT32_MAX, 9, DUE__CLAIMED);

    cr_expect_not(due__word_free(&shared));
    cr_expect_eq(shared, due__word(UINT32_MAX, 0, DUE__DONE));
}

#ifndef NDEBUG
/* In a release nothing is asked. */
Test(word, stops_who_swaps_it_for_what_it_may_not_become, .signal = SIGABRT)
{
    uint64_t shared = word(DUE__CLAIMED, 0);
    uint64_t seen = shared;

    due__word_claim(&shared, &seen, DUE__MOVING);
}

Test(word, stops_who_stores_what_it_may_not_become, .signal = SIGABRT)
{
    uint64_t shared = word(DUE__DEAD, 0);

    due__word_set(&shared, word(DUE__WAITING, 0));
}
#endif
