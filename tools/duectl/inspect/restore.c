/* restore.c - what a stored queue holds, and would give back; nothing is written. */
#include "inspect/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What one topic holds. */
struct sum {
    bool list;
    bool out; /* those that are looked at are on a lease */
    uint64_t jobs;
    uint64_t leased;
    uint64_t tried; /* jobs that were handed out before */
    uint32_t most;  /* times that one of them was */
    uint64_t unreadable;
    int64_t first_us;
    int64_t last_us;
    uint64_t before, all; /* jobs that were looked at before, and that there are */
};

static bool add(void *ctx, const struct ctl_found *found)
{
    struct sum *sum = ctx;
    struct due__record_room room;
    due_record record;
    int rc = ctl_record_read(&record, &room, found->id, found->record, found->entry);
    /* Of one that is out the score is the end of its lease. */
    int64_t score = sum->out && rc == 0 ? ctl_score_of(&record) : found->score;

    sum->leased += sum->out;
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
    if (sum->list)
        ctl_restore_line(score, &record);
    else
        ctl_progress("restore: jobs", sum->before + sum->jobs, sum->all);
    return true;
}

static void say_sum(const char *name, const struct sum *sum)
{
    char first[CTL_WHEN];
    char last[CTL_WHEN];

    ctl_progress_end();
    printf("%-20s %9" PRIu64 "  %-24s  %-24s %8" PRIu64 " %8u", name, sum->jobs,
           ctl_date_show(first, sum->first_us), ctl_date_show(last, sum->last_us), sum->tried,
           sum->most);
    if (sum->leased > 0)
        printf("  %" PRIu64 " on a lease", sum->leased);
    if (sum->unreadable > 0)
        printf("  %" PRIu64 " cannot be read", sum->unreadable);
    putchar('\n');
}

/* The topics in the order in which the server has them, with *@shown jobs.  An exit status. */
static int show_topics(struct ctl_server *s, const struct ctl_keys *k, bool list,
                       const struct ctl_head *head, uint64_t *shown)
{
    bool shared = head->shared;
    redisReply *topics = CTL_ASK(s, "HKEYS", k->topics);
    bool fine = ctl_answer_is(topics, REDIS_REPLY_ARRAY, "topics");
    char name[CTL_SHOWN];

    if (fine && !list)
        printf("%-20s %9s  %-24s  %-24s %8s %8s\n", "topic", "jobs", "first due", "last due",
               "tried", "most");
    for (size_t i = 0; fine && i < topics->elements; i++) {
        const redisReply *topic = topics->element[i];
        struct sum sum = { .list = list, .before = *shown, .all = head->jobs };

        struct ctl_text text = { topic->str, (size_t)topic->len };

        fine = due__reply_is_text(topic) && ctl_walk(s, k, text, add, &sum);
        sum.out = shared;
        fine = fine && (!shared || ctl_walk_claimed(s, k, text, add, &sum));
        sum.out = false;
        fine = fine && (!shared || ctl_walk_kept_back(s, k, text, add, &sum));
        if (fine && !list && sum.jobs > 0)
            say_sum(topic->len == 0 ? "-" : ctl_shown(name, topic->str, (size_t)topic->len), &sum);
        *shown += sum.jobs;
    }
    freeReplyObject(topics);
    struct sum dead = { .list = list, .before = *shown, .all = head->jobs };
    fine = fine && ctl_walk(s, k, CTL_DEAD, add, &dead);
    if (fine && !list && dead.jobs > 0)
        say_sum("(dead)", &dead);
    *shown += dead.jobs;
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
    if (shown < least)
        printf("hidden  %" PRIu64
               " records stand in none of these topics: duectl verify says more\n",
               least - shown);
    freeReplyObject(now);
    return CTL_FINE;
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
        printf("jobs    %" PRIu64 ", %" PRIu64 " of them dead; %" PRIu64
               " damaged records set aside\n",
               head.jobs, head.dead, head.aside);
        if (head.kept > 0)
            printf("keys    %" PRIu64 " kept after their job is gone\n", head.kept);
        uint64_t shown = 0;
        status = show_topics(&server, &keys, look->list, &head, &shown);
        if (status == CTL_FINE)
            status = say_hidden(&server, &keys, head.jobs, shown);
    }
    ctl_server_close(&server);
    return fflush(stdout) != 0 ? CTL_BROKEN : status;
}
