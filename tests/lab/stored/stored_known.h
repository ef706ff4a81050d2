/* stored_known.h - unit tests of verbs whose answer is another on a shared queue, and why.
 *
 * All others have the same there as in memory.  A reason stands under the row of the guide's table
 * that says so ("Many programs, one queue"); without a row it is no difference of a shared queue:
 * the test is about memory, or about what no store has.
 */
#ifndef STORED_KNOWN_H
#define STORED_KNOWN_H

#include "lab/stored/known.h"

/* clang-format off */
static const struct stored_known stored_known[] = {
    { "statistics",
      "they count neither what lies in the store nor what is done to it there",
      "ack_batch.answers_that_it_is_late_for_leases_that_have_ended "
      "cancel.lends_the_job_to_the_caller_who_asks_for_it "
      "cancel.takes_a_waiting_job_back_for_good "
      "clear.takes_back_everything_and_says_how_much "
      "dead.a_cancel_takes_it_for_good "
      "dead.kick_and_clear_by_topic "
      "exposition.is_what_prometheus_reads "
      "exposition.of_names_that_are_no_text_is_text "
      "exposition.shows_what_limiters_hold_and_rounds_that_were_done "
      "jobs_done.are_done_with_together_whatever_they_are "
      "keys.a_dead_job_has_its_key_and_comes_back_unless_refused "
      "lapsed.is_counted_as_waiting "
      "metrics.know_the_oldest_job "
      "metrics.know_the_oldest_job_that_is_kept_back "
      "page.of_a_queue_that_is_empty_has_zeroes "
      "revoke.nor_when_the_lease_ends_nor_when_it_is_buried "
      "stats.follow_every_way_in_and_out "
      "stats.tell_who_sorted_each_job_in "
      "topic_stats.add_up_whatever_becomes_of_the_jobs "
      "topic_stats.count_each_round_of_a_job_that_repeats_once "
      "topic_stats.follow_a_job_that_is_moved "
      "topic_stats.know_who_died_of_age_and_what_is_ready_after_that "
      "topic_stats.of_a_queue_that_did_not_ask_for_them_are_zero " },
    { "`due_next_deadline()`, `due_poll()`",
      "they tell of what this process has claimed",
      "amend.a_plain_job_is_given_a_limit_headers_or_a_policy "
      "defects.an_earlier_job_between_selection_and_hand_over_loses_nothing "
      "dequeue.is_exact_for_random_deadlines "
      "group.takes_turns_by_the_order_of_the_topic "
      "keys.a_job_whose_last_holder_still_reads_it_is_not_replaced_in_place "
      "keys.a_ready_job_can_be_changed_too "
      "limit.changes_nothing_whichever_allocation_fails "
      "limiter.gets_a_pass_back_from_who_is_cancelled_while_its_bytes_are_lent "
      "limiter.is_not_peeked_over "
      "limiter_change.of_the_content_leaves_a_job_in_its_group "
      "limiter_change.of_the_time_gives_the_pass_back "
      "nothing_yet.due_poll_says_when "
      "poll.counts_as_many_as_a_limit_lets_through "
      "poll.counts_no_job_of_a_paused_topic "
      "poll.counts_no_job_that_was_cancelled "
      "reschedule.and_cancel_and_take_in_every_state_have_a_definite_end " },
    { "close",
      "one that drains does not wait for what lies in the store",
      "capacity.callers_that_waited_in_vain_leave_no_memory_behind "
      "capacity.wakes_a_waiting_enqueue_at_close "
      "close.by_draining_can_be_given_up_for_discarding "
      "close.by_draining_delivers_each_job_at_its_deadline "
      "close.by_draining_ends_when_everything_is_cleared "
      "close.by_draining_ends_when_the_last_job_is_cancelled "
      "close.by_draining_ends_when_the_last_job_is_taken "
      "close.by_draining_ends_when_the_last_jobs_are_cancelled_together "
      "close.by_draining_keeps_its_timeout "
      "close.by_draining_lets_blocked_consumers_have_what_is_left "
      "close.by_draining_on_a_real_clock_ends_by_itself "
      "close.by_draining_waits_for_paused_topics "
      "close.by_several_callers_keeps_the_timeout_of_each "
      "close.drains_until_the_last_of_many_however_they_leave "
      "close.that_is_tried_again_and_again_takes_no_more_memory "
      "dead.a_draining_close_waits_until_the_last_one_is "
      "enqueue.refuses_everything_once_the_queue_closes "
      "enqueue_batch.that_a_close_refuses_is_told_as_it_would_have_been "
      "enqueue_batch.that_a_close_refuses_takes_nothing_of_an_earlier_one_away "
      "free.refuses_a_queue_that_still_drains "
      "keys_between.who_is_refused_by_a_close_leaves_the_key_whose_it_was "
      "limiter.is_drained_in_turn "
      "repeat.a_draining_close_ends "
      "reschedule.works_while_the_queue_drains "
      "reserve.draining_waits_for_the_answer "
      "workers_close.a_drain_delivers_what_is_left_and_what_is_tried_again "
      "workers_close.after_a_stop_a_drain_waits_for_jobs_that_nobody_takes " },
    { "close",
      "what waits stays in the store when the queue is closed, and is not shown to on_discard",
      "census.answers_what_is_wrong_and_writes_nothing "
      "close.by_discarding_shows_every_waiting_job_to_the_hook_once "
      "close.may_be_called_again_and_again "
      "close.wakes_a_caller_blocked_in_every_verb "
      "close_log.of_a_queue_in_memory_says_that_its_jobs_are_discarded "
      "free.that_is_refused_leaves_the_clock_to_the_queue "
      "free.waits_for_who_turns_the_clock_and_discards "
      "lapsed.after_a_close_is_handed_to_nobody "
      "open.a_hook_gets_its_own_ctx_or_that_of_all "
      "pause.does_not_keep_close_from_discarding "
      "repeat.a_discarding_close_shows_it_once "
      "update.of_a_closed_queue_is_refused "
      "workers_close.what_is_tried_again_in_a_closed_queue_is_discarded " },
    { "close",
      "who answers after it is not heard: the job stays reserved until its lease ends",
      "close.leaves_every_call_a_definite_answer "
      "dead.what_is_dead_is_not_kicked_in_a_queue_that_closes "
      "keys_calls.a_closed_queue_takes_no_keys "
      "reserve.a_closed_queue_takes_answers "
      "workers_close.waits_for_a_handler_as_long_as_it_was_told " },
    { "a lease that ends by itself",
      "the job counts as held until somebody claims it",
      "dead.a_second_later_when_there_is_no_memory_at_the_end_of_the_last_lease "
      "kick.finds_what_has_died_just_now "
      "lapsed.can_be_amended "
      "lapsed.can_be_promoted "
      "lapsed.can_be_rescheduled "
      "lapsed.can_be_updated "
      "lapsed.comes_back_from_a_cancel "
      "lapsed.for_the_last_time_can_be_cancelled "
      "lapsed.for_the_last_time_can_be_kicked "
      "lapsed.for_the_last_time_is_cleared_with_the_dead "
      "lapsed.for_the_last_time_is_kicked_with_all "
      "lapsed.for_the_last_time_is_listed_as_dead "
      "lapsed.is_cleared "
      "lapsed.is_found_and_listed_as_due "
      "lapsed.is_put_off_by_its_key "
      "lapsed.is_replaced_by_its_key "
      "lapsed.is_seen_by_a_peek "
      "lapsed.stays_the_earliest_of_its_key " },
    { "attempts",
      "they are counted before the hand-over only where they are limited",
      "peers.a_job_survives_all_failures_but_the_last "
      "reserve.a_lease_that_ends_gives_it_back_to_the_nanosecond "
      "workers.a_handler_that_overruns_is_told_and_its_answer_changes_nothing "
      "workers.a_handler_that_overruns_loses_its_job_on_a_kernel_clock_too "
      "workers_stop.after_its_timeout_the_leases_run_out " },
    { "`on_event`",
      "each process is told its part, and nobody of what is done in the store",
      "events.an_enqueue_without_memory_is_refused_and_not_told "
      "events.hold_no_lock_that_others_need "
      "events.of_a_dead_job_that_an_enqueue_with_its_key_brings_back "
      "events.of_a_job_that_comes_again "
      "events.of_a_job_that_is_taken "
      "events.of_a_lease_that_ends "
      "events.of_jobs_of_a_group "
      "events.of_jobs_of_a_pool "
      "events.of_jobs_that_are_answered_for "
      "events.of_jobs_that_are_not_handed_out "
      "events.say_ready_before_delivered_also_when_it_is_at_once "
      "events.tell_of_a_job_that_is_moved_each_time_it_is_ready "
      "hooks.may_open_use_and_free_other_queues_wherever_they_are_called "
      "hooks.of_memory_are_not_called_under_the_timelines_lock " },
    { "`dead_keep_ns`, `dead_max`",
      "dead jobs are looked at every ten seconds, and others may have been",
      "dead.is_as_old_as_it_was_when_it_is_changed "
      "dead.kept_for_a_time_and_then_shown_to_on_discard "
      "dead.the_oldest_of_too_many_go "
      "forever.is_how_long_a_dead_job_is_kept "
      "forever.is_how_long_a_job_may_wait "
      "keys.a_dead_job_that_is_cleared_frees_its_key " },
    { "order",
      "of equal ones the job that was put in first comes first, also if it was moved",
      "limiter.has_room_for_thousands_of_groups "
      "peers.a_paused_topic_holds_retries_back_and_keeps_their_order "
      "reschedule.puts_the_job_last_among_equals "
      "reschedule.puts_the_job_last_among_many_equals_that_have_just_come "
      "update_large.puts_the_job_last_among_equals_that_have_just_come " },
    { "order",
      "topics do not take turns: the job comes first that is due first",
      "reserve.of_several_topics_at_once "
      "topics.all_get_their_turn_when_one_is_flooded "
      "topics.have_their_turns_in_the_order_in_which_a_clock_found_them_due "
      "topics.take_turns "
      "topics.take_turns_whoever_else_is_served_in_between " },
    { "`due_list()`, `due_peek()`",
      "they show what lies in the store by time, also what is held back",
      "by_priority.is_what_peek_shows "
      "list.takes_any_number_for_a_cursor "
      "peek.passes_over_paused_topics "
      "peek.shows_what_becomes_due_next_whatever_its_topic "
      "peek.tells_what_comes_next_and_not_what_a_pause_holds_back_also_behind_a_lease " },
    { "groups; pause, resume, `due_topic_limit()`",
      "what was dequeued holds back nobody, and no process counts passes",
      "group.changes_nothing_whichever_allocation_fails "
      "group.is_forgotten_with_its_last_job_and_what_waits_dead_with_it "
      "group.names_are_bytes_of_any_value_and_length "
      "group.passes_over_those_that_were_cancelled_and_a_trim_sweeps_them_out "
      "group.runs_beside_other_groups_and_jobs_of_none "
      "group.runs_one_job_after_another "
      "limit.and_groups_hold_together "
      "limit.is_given_up_by_one_that_waits_between_its_group_and_its_topic "
      "limit.is_raised_lowered_and_lifted_while_jobs_run "
      "limit.lets_thousands_through_when_it_is_lifted "
      "limit.of_a_topic_holds_for_it_alone "
      "limit.that_comes_late_holds_back_also_what_is_shown_already "
      "limiter.gets_a_group_s_pass_back_at_every_end_of_a_job "
      "limiter.gets_a_limit_s_pass_back_at_every_end_of_a_job "
      "limiter.gets_both_passes_back_at_every_end_of_a_job "
      "limiter.gets_passes_back_from_what_is_cleared_killed_and_discarded "
      "limiter.goes_with_a_paused_topic "
      "limiter.lets_nobody_through_before_who_was_left_on_a_clock_with_steps "
      "limiter.outlives_the_end_of_the_arrival_numbers "
      "limiter.that_is_emptied_is_left_by_the_sweep_that_stands_at_it "
      "limiter_change.to_the_next_round_comes_at_once_when_it_is_taken_for_good "
      "nothing_yet.is_over_when_a_limiter_opens "
      "nothing_yet.is_over_when_the_next_of_a_group_may_run "
      "peers.nothing_stays_in_flight_whatever_the_end " },
    { "`due_update()`, `due_amend()`",
      "the priority is part of a stored job's id",
      "amend.the_priority_counts_from_then_on "
      "keys.replacing_gives_the_job_new_content_and_its_deadline "
      "limiter_change.of_the_priority_gives_another_place_at_the_limiter " },
    { "`due_update()`, `due_amend()`",
      "what was lent is a copy, and the job itself can be changed",
      "repeat.waits_again_while_its_bytes_are_lent "
      "update.bytes_that_are_still_lent_stay " },
    { "unique keys",
      "a job that comes again does so also after its key was taken over",
      "keys_calls.a_repeating_job_whose_key_was_taken_over_ends_with_its_round " },
    { "`due_fd()`",
      "it is readable until a take has found nothing",
      "fd.is_not_left_readable_by_the_last_job_that_was_taken " },
    { "timeout 0",
      "a job is to be claimed before it can be had",
      "dequeue.has_a_ready_job_however_short_the_timeout " },
    { "dequeue, reserve, workers",
      "a lease, like a key, is no longer than a hundred years",
      "forever.is_how_long_a_handler_may_take "
      "forever.is_how_long_a_lease_lasts "
      "forever.is_how_long_a_nack_puts_a_job_off "
      "peers.a_lease_of_the_maximum_never_ends "
      "repeat.the_end_of_time_saturates " },
    { "",
      "a pointer cannot be stored",
      "cancel.gives_a_carried_pointer_back "
      "capacity.keeps_a_carried_pointer_with_the_caller_on_failure "
      "clear.gives_a_carried_pointer_to_the_discard_hook "
      "close.by_discarding_hands_carried_pointers_to_the_hook "
      "dequeue.keeps_the_order_of_arrival_among_equal_deadlines "
      "enqueue.carries_a_pointer_without_touching_what_it_points_to "
      "enqueue_batch.keeps_the_order_of_equal_deadlines "
      "fd.becomes_readable_for_a_pointer_put_before_the_head "
      "fd.becomes_readable_for_a_pointer_put_before_the_head_on_every_clock "
      "headers.beside_a_pointer "
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
      "enqueue.refuses_with_enomem_and_the_queue_still_works "
      "keys_between.who_lost_the_key_meanwhile_is_not_changed "
      "keys_between.who_was_to_wait_for_room_and_has_no_time_left_is_told_so "
      "open.can_reserve_memory_ahead "
      "repeat.a_round_needs_no_memory "
      "reserve.without_memory_the_job_waits_on "
      "stats.show_memory_that_trim_has_given_back "
      "topic_stats.keep_one_as_ready_that_is_too_old_and_cannot_be_buried "
      "update.keeps_what_another_call_has_changed_meanwhile "
      "workers_pause.of_who_finds_no_memory_is_twice_as_long_each_time " },
    { "",
      "it looks into a queue that has its jobs in memory only",
      "event_loop.has_its_descriptor_set_to_the_head_to_the_nanosecond "
      "event_loop.has_its_descriptor_set_when_its_time_changes_or_somebody_has_looked_in_vain "
      "calls.that_were_lost_are_known "
      "nothing_yet.is_over_for_one_that_was_left_in_the_inbox "
      "nothing_yet.needs_no_lock "
      "open.refuses_numbers_that_mean_nothing "
      "processes.of_a_queue_that_is_not_shared_are_this_one "
      "worker.leaves_its_lease_alone_when_a_copy_of_its_last_job_is_extended " },
    { "",
      "it turns the clock on while a store is to answer that a lease goes on; share_verbs has it",
      "workers.a_lease_is_extended_while_its_handler_runs " },
    { "",
      "ids of two stores may be the same; that in memory says what it is told of nonsense",
      "id.of_another_queue_is_unknown "
      "id.that_was_made_up_is_unknown " },
};

/* Tens of thousands of exchanges, one after the other: these are made with LAB_STORED_MANY. */
static const struct stored_known stored_many = {
    "",
    "tens of thousands of exchanges, one after the other",
      "cancel.leaves_no_more_behind_than_there_are_live_jobs "
      "dequeue.gives_everything_after_a_long_stall_in_order "
      "dequeue_batch.drains_20000_due_at_once_in_order "
      "keys.kept_keys_go_when_their_time_is_over "
      "keys.many_keys_are_found_while_the_table_grows_and_shrinks "
      "refused.pages_make_an_enqueue_fail_and_the_queue_goes_on "
      "reschedule.storm_leaves_no_growing_heap_behind "
      "retry.equal_policies_are_one_and_there_are_65535 "
      "topics.by_the_thousand_keep_their_jobs_apart ",
};
/* clang-format on */

#endif
