/* restore.c - what a stored queue holds, and would give back; nothing is written. */
#include "inspect/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What one topic holds. */
struct summing {
    struct ctl_sum of;
    bool list;
    bool out;             /* those that are looked at are on a lease */
    uint64_t before, all; /* jobs that were looked at before, and that there are */
};

static bool add(void *ctx, const struct ctl_found *found)
{
    struct summing *summing = ctx;
    struct ctl_sum *sum = &summing->of;
    struct due__record_room room;
    due_record record;
    int rc = ctl_record_read(&record, &room, found->id, found->record, found->entry);
    /* Of one that is out the score is the end of its lease. */
    int64_t score = summing->out && rc == 0 ? ctl_score_of(&record) : found->score;

    sum->leased += summing->out;
    if (sum->jobs++ == 0 || score < sum->first_us)
        sum->first_us = score;
    if (score > sum->last_us)
        sum->last_us = score;
    if (rc != 0) {
        sum->unreadable++;
        return true;
    }
    sum->tried += record.attempts > 0;
    if (record.attempts > sum->most)
        sum->most = record.attempts;
    if (summing->list)
        ctl_restore_line(score, &record);
    else
        ctl_progress("restore: jobs", summing->before + sum->jobs, summing->all);
    return true;
}

/* The topics in the order in which the server has them, with *@shown jobs.  An exit status. */
static int show_topics(struct ctl_server *s, const struct ctl_keys *k, bool list,
                       const struct ctl_head *head, uint64_t *shown)
{
    bool shared = head->shared;
    redisReply *topics = CTL_ASK(s, "HKEYS", k->topics);
    bool fine = ctl_answer_is(topics, REDIS_REPLY_ARRAY, "topics");

    if (fine && !list)
        ctl_restore_heading();
    for (size_t i = 0; fine && i < topics->elements; i++) {
        const redisReply *topic = topics->element[i];
        struct summing sum = { .list = list, .before = *shown, .all = head->jobs };

        struct ctl_text text = { topic->str, (size_t)topic->len };

        fine = due__reply_is_text(topic) && ctl_walk(s, k, text, add, &sum);
        sum.out = shared;
        fine = fine && (!shared || ctl_walk_claimed(s, k, text, add, &sum));
        sum.out = false;
        fine = fine && (!shared || ctl_walk_kept_back(s, k, text, add, &sum));
        if (fine && !list && sum.of.jobs > 0)
            ctl_restore_sum(text.at, text.len, &sum.of);
        *shown += sum.of.jobs;
    }
    freeReplyObject(topics);
    struct summing dead = { .list = list, .before = *shown, .all = head->jobs };
    fine = fine && ctl_walk(s, k, CTL_DEAD, add, &dead);
    if (fine && !list && dead.of.jobs > 0)
        ctl_restore_sum(NULL, 0, &dead.of);
    *shown += dead.of.jobs;
    ctl_progress_end();
    return fine ? CTL_FINE : ctl_server_status(s);
}

/* Of @before records fewer were @shown: not because they went meanwhile.  An exit status. */
static int say_hidden(struct ctl_server *s, const struct ctl_keys *k, uint64_t before,
                      uint64_t shown)
{
    redisReply *now = CTL_ASK(s, "HLEN", k->jobs);

    if (!ctl_answer_is(now, REDIS_REPLY_INTEGER, "j")) {
        freeReplyObject(now);
        return ctl_server_status(s);
    }
    uint64_t least = (uint64_t)now->integer < before ? (uint64_t)now->integer : before;
    if (shown < least) {
        ctl_report_line(CTL_BAD,
                        "hidden  %" PRIu64
                        " records stand in none of these topics: duectl verify says more",
                        least - shown);
        ctl_object_begin();
        ctl_object_number("hidden", least - shown);
        ctl_object_end();
    }
    freeReplyObject(now);
    return CTL_FINE;
}

static void say_head(const struct ctl_head *head)
{
    ctl_report_line(CTL_PLAIN,
                    "jobs    %" PRIu64 ", %" PRIu64 " of them dead; %" PRIu64
                    " damaged records set aside",
                    head->jobs, head->dead, head->aside);
    if (head->kept > 0)
        ctl_report_line(CTL_PLAIN, "keys    %" PRIu64 " kept after their job is gone", head->kept);
}

static void tell_head(const char *queue, const struct ctl_head *head)
{
    ctl_object_begin();
    ctl_object_text("queue", queue);
    ctl_object_flag("shared", head->shared);
    if (head->owner[0] != '\0')
        ctl_object_text("owner", head->owner);
    if (head->settled)
        ctl_object_number("processes", head->processes);
    ctl_object_number("jobs", head->jobs);
    ctl_object_number("dead", head->dead);
    ctl_object_number("aside", head->aside);
    ctl_object_number("kept_keys", head->kept);
    ctl_object_end();
}

int ctl_server_restore(const struct ctl_look *look)
{
    struct ctl_server server;
    struct ctl_keys keys;
    struct ctl_head head;
    int status = ctl_server_open(&server, look->url);

    if (status != 0)
        return status;
    ctl_urls_forget();
    ctl_keys_make(&keys, look->queue);
    status = ctl_head_read(&server, &keys, look->queue, &head);
    if (status == 0) {
        say_head(&head);
        if (!look->list)
            tell_head(look->queue, &head);
        uint64_t shown = 0;
        status = show_topics(&server, &keys, look->list, &head, &shown);
        if (status == CTL_FINE)
            status = say_hidden(&server, &keys, head.jobs, shown);
    }
    ctl_server_close(&server);
    return status;
}
