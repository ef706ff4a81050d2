/* owned_known.h - unit tests of verbs whose answer is another on a queue with a store that one
 * process owns, and why.
 *
 * All others have the same there as in memory.  A reason stands under the sentence that says so, of
 * docs/guide.md, docs/reliable.md or include/due/due.h; without one it is no difference of such a
 * queue: the test is about memory, or about what no store has.
 */
#ifndef OWNED_KNOWN_H
#define OWNED_KNOWN_H

#include "lab/stored/known.h"

/* clang-format off */
static const struct stored_known owned_known[] = {
    { "with a store, leave it there",
      "what waits is not shown to on_discard, nor counted as discarded, when the queue is closed",
      "close.by_discarding_shows_every_waiting_job_to_the_hook_once "
      "close.by_draining_can_be_given_up_for_discarding "
      "close.may_be_called_again_and_again "
      "close.wakes_a_caller_blocked_in_every_verb "
      "events.of_jobs_that_are_not_handed_out "
      "free.that_is_refused_leaves_the_clock_to_the_queue "
      "free.waits_for_who_turns_the_clock_and_discards "
      "lapsed.after_a_close_is_handed_to_nobody "
      "open.a_hook_gets_its_own_ctx_or_that_of_all "
      "pause.does_not_keep_close_from_discarding "
      "repeat.a_discarding_close_shows_it_once "
      "update.of_a_closed_queue_is_refused "
      "workers_close.what_is_tried_again_in_a_closed_queue_is_discarded " },
    { "With a store it stays there, as it is there, and nothing is written any more: an ack",
      "who acks after the close is not heard",
      "dead.what_is_dead_is_not_kicked_in_a_queue_that_closes "
      "reserve.a_closed_queue_takes_answers "
      "workers_close.waits_for_a_handler_as_long_as_it_was_told " },
    { "calls that name a job of a queue that closes answer `DUE_ECLOSED` once it was left to the \
store",
      "what was left there is not said to be gone",
      "close.leaves_every_call_a_definite_answer "
      "keys_calls.a_closed_queue_takes_no_keys " },
    { "with a store such a job stays there, moved to its next round",
      "so the round with which a drain ends is neither acked nor dequeued: there is another one",
      "repeat.a_draining_close_ends " },
    { "an enqueue that had begun before may still be in",
      "a stored queue has it then, and the drain waits for it",
      "enqueue_batch.that_a_close_refuses_is_told_as_it_would_have_been "
      "enqueue_batch.that_a_close_refuses_takes_nothing_of_an_earlier_one_away "
      "keys_between.who_is_refused_by_a_close_leaves_the_key_whose_it_was " },
    { "What ends by itself is removed from the store after that",
      "a cancelled job whose lease ends, and a dead one whose time is over, counts until then",
      "dead.kept_for_a_time_and_then_shown_to_on_discard "
      "keys.a_dead_job_that_is_cleared_frees_its_key " },
    { "among equals it then stands last until the next opening",
      "the whole job is put there again",
      "amend.a_job_stays_in_its_group "
      "update.keeps_its_place_among_equals " },
    { "Its priority is part of that id: `DUE_ENOTSUP`",
      "and an enqueue with its key leaves it its priority",
      "keys.replacing_gives_the_job_new_content_and_its_deadline "
      "limiter_change.of_the_priority_gives_another_place_at_the_limiter "
      "amend.the_priority_counts_from_then_on " },
    { "a dequeue or reserve of a due job; try again",
      "a timeout of less than a microsecond is over before the store has answered",
      "dequeue.has_a_ready_job_however_short_the_timeout " },
    { "While a hook of a queue with a store runs, nothing else may be sent to that store",
      "and the hook of this test waits for what others send",
      "events.hold_no_lock_that_others_need " },
    { "",
      "a pointer cannot be stored",
      "cancel.gives_a_carried_pointer_back "
      "capacity.keeps_a_carried_pointer_with_the_caller_on_failure "
      "clear.gives_a_carried_pointer_to_the_discard_hook "
      "close.by_discarding_hands_carried_pointers_to_the_hook "
      "dequeue.keeps_the_order_of_arrival_among_equal_deadlines "
      "enqueue.carries_a_pointer_without_touching_what_it_points_to "
      "enqueue.refuses_everything_once_the_queue_closes "
      "enqueue_batch.keeps_the_order_of_equal_deadlines "
      "fd.becomes_readable_for_a_pointer_put_before_the_head "
      "fd.becomes_readable_for_a_pointer_put_before_the_head_on_every_clock "
      "headers.beside_a_pointer "
      "hooks.may_open_use_and_free_other_queues_wherever_they_are_called "
      "job.of_a_carried_pointer_leaves_the_pointer_alone "
      "keys_calls.a_pointer_that_is_replaced_is_shown "
      "nothing_yet.is_over_for_a_batch "
      "nothing_yet.is_over_for_the_short_verbs "
      "peers.a_handler_may_stop_its_pool_and_what_is_left_stays "
      "peers.a_job_that_always_fails_holds_nobody_up_and_dies "
      "peers.a_pool_reserves_no_more_than_its_cap "
      "peers.a_prime_number_of_jobs_over_three_workers_comes_once_each "
      "peers.jobs_of_one_instant_keep_their_order_through_retries "
      "peers.odd_jobs_nacked_and_even_ones_acked_are_counted_exactly "
      "peers.twenty_thousand_due_at_once_come_in_order_once_each "
      "promote.of_many_gives_each_of_them_once "
      "repeat.with_every_shape_of_content "
      "update.a_carried_pointer_is_not_lost " },
    { "",
      "it counts or refuses memory, and a store asks for some besides",
      "cancel.releases_the_bytes_when_nobody_asks_for_the_job "
      "clear.of_many_thousands_releases_their_memory "
      "dead.cost_memory_and_not_those_that_may_die "
      "enqueue.allocates_nothing_for_up_to_32_bytes "
      "open.can_reserve_memory_ahead "
      "repeat.a_round_needs_no_memory "
      "update.keeps_what_another_call_has_changed_meanwhile " },
    { "",
      "it looks into a queue that has its jobs in memory only",
      "open.refuses_numbers_that_mean_nothing "
      "stats.tell_who_sorted_each_job_in "
      "worker.leaves_its_lease_alone_when_a_copy_of_its_last_job_is_extended " },
    { "",
      "it puts jobs in while it has the timeline, without which the store's answer is not heard",
      "limiter.lets_nobody_through_before_who_was_left_on_a_clock_with_steps "
      "nothing_yet.is_over_for_one_that_was_left_in_the_inbox "
      "nothing_yet.needs_no_lock " },
    { "",
      "it counts what is told before anybody looks; what the store has is sorted in by who sent it",
      "events.an_enqueue_without_memory_is_refused_and_not_told " },
    { "",
      "ids of two stores may be the same",
      "id.of_another_queue_is_unknown " },
    { "",
      "there are figures of a store besides",
      "page.of_a_queue_that_is_empty_has_zeroes " },
};
/* clang-format on */

#endif
