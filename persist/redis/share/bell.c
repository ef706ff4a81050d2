/* bell.c - where one of those who wait is rung: a connection of its own, subscribed to the channel
 * of its writer.
 *
 * A message says that it is to claim now, or when.  One that came while nobody was subscribed is
 * lost, so whoever has subscribed anew is told that a ring may have been missed.  A connection on
 * which nothing comes is asked whether it lives, half as often as a beat is due.
 *
 * Threads  one is in listen(); the lane that joins anew tells it of another channel.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "redis/share/share.h"

int due__bell_begin(struct due__redis *s)
{
    struct due__share_bell *b = &s->share->bell;

    b->link = due__link_twin(s->link);
    if (b->link == NULL)
        return DUE_ENOMEM;
    if (pthread_mutex_init(&b->lock, NULL) != 0) {
        due__link_free(b->link);
        b->link = NULL;
        return DUE_ENOMEM;
    }
    return 0;
}

void due__bell_rename(struct due__redis *s)
{
    struct due__share_bell *b = &s->share->bell;

    pthread_mutex_lock(&b->lock);
    snprintf(b->channel, sizeof b->channel, "%sr:%s", s->share->base, s->share->writer);
    bool again = b->turn++ > 0;
    b->every_ns = s->share->renew_ns;
    pthread_mutex_unlock(&b->lock);
    if (again)
        due__link_interrupt(b->link);
}

void due__bell_every(struct due__redis *s, int64_t ns)
{
    struct due__share_bell *b = &s->share->bell;

    pthread_mutex_lock(&b->lock);
    b->every_ns = ns;
    pthread_mutex_unlock(&b->lock);
}

static void be_deaf(struct due__share_bell *b)
{
    due__link_down(b->link);
    b->heard = 0;
    b->asked = b->begun = false;
}

/* An array of at least @n, which begins with that word. */
static bool says(const redisReply *r, const char *word, size_t n)
{
    return r->type == REDIS_REPLY_ARRAY && r->elements >= n && due__reply_is_text(r->element[0]) &&
           strcmp(r->element[0]->str, word) == 0;
}

/* ---- Subscribing ----------------------------------------------------------------------------- */

static int begin_subscribing(struct due__share_bell *b, int64_t until_ns)
{
    char channel[sizeof b->channel];

    pthread_mutex_lock(&b->lock);
    b->turn_asked = b->turn;
    memcpy(channel, b->channel, sizeof channel);
    pthread_mutex_unlock(&b->lock);
    due__link_command(b->link, 2);
    due__link_text(b->link, "SUBSCRIBE");
    due__link_text(b->link, channel);
    int rc = due__link_send(b->link, until_ns);
    b->begun = rc == 0;
    return rc;
}

/* 0: subscribed; or an error. */
static int subscribe(struct due__share_bell *b, int64_t until_ns)
{
    redisReply *reply = NULL;
    int rc = b->begun ? 0 : begin_subscribing(b, until_ns);

    if (rc == 0)
        rc = due__link_reply(b->link, &reply, until_ns);
    if (rc == DUE_EAGAIN && b->begun)
        return rc;
    if (rc == 0 && says(reply, "subscribe", 3)) {
        b->heard = b->turn_asked;
        b->heard_ns = due__mono_ns();
        b->begun = false;
    } else {
        if (rc == 0)
            due__link_refused(b->link, "it lets nobody subscribe");
        be_deaf(b);
        rc = DUE_ESTORE;
    }
    if (reply != NULL)
        freeReplyObject(reply);
    return rc;
}

/* ---- Hearing --------------------------------------------------------------------------------- */

/* A message: a stamp; unless it is a ring a time, and when that was said, in us.  What cannot be
 * read is a ring. */
static struct due_heard read_message(const redisReply *r)
{
    struct due_heard heard = { .stamp = 0 };
    long long alarm_us = 0;
    long long now_us = 0;

    if (due__reply_is_text(r))
        (void)sscanf(r->str, "%" SCNu64 " %lld %lld", &heard.stamp, &alarm_us, &now_us);
    if (alarm_us > 0 && alarm_us <= DUE_FOREVER / 1000)
        heard.alarm_ns = alarm_us * 1000;
    if (now_us > 0 && now_us <= DUE_FOREVER / 1000)
        heard.now_ns = now_us * 1000;
    return heard;
}

/* Two messages in one: to come now, or at the earlier time, as of the later one. */
static void add_heard(struct due_heard *all, struct due_heard one, bool first)
{
    if (first || one.alarm_ns < all->alarm_ns)
        all->alarm_ns = one.alarm_ns;
    if (one.stamp > all->stamp)
        all->stamp = one.stamp;
    if (one.now_ns > all->now_ns)
        all->now_ns = one.now_ns;
}

/* 1: there was a message; 0: something else was said; DUE_ESTORE: it makes no sense. */
static int understand(struct due__share_bell *b, redisReply *reply, struct due_heard *heard,
                      bool first)
{
    int rung = says(reply, "message", 3);
    bool pong = says(reply, "pong", 2);

    if (rung)
        add_heard(heard, read_message(reply->element[2]), first);

    b->heard_ns = due__mono_ns();
    b->asked = b->asked && !pong;
    freeReplyObject(reply);
    if (rung || pong)
        return rung;
    be_deaf(b);
    return DUE_ESTORE;
}

/* Does the connection live?  Its answer must come in its time, or the link goes down. */
static void ask(struct due__share_bell *b)
{
    static const char *const ping[] = { "PING" };

    due__link_words(b->link, 1, ping);
    if (due__link_send(b->link, 0) == 0)
        b->asked = true;
    else
        be_deaf(b);
}

/* When the connection is asked, if nothing comes until then. */
static int64_t when_to_ask(struct due__share_bell *b)
{
    pthread_mutex_lock(&b->lock);
    int64_t every_ns = b->every_ns;
    pthread_mutex_unlock(&b->lock);
    return b->asked ? DUE_FOREVER : due__ns_after(b->heard_ns, every_ns);
}

/* 1: rung; 0: not, or not yet; DUE_ESTORE. */
static int hear(struct due__redis *s, struct due_heard *heard, int64_t until_ns)
{
    struct due__share_bell *b = &s->share->bell;
    redisReply *reply = NULL;
    int rung = 0;

    for (;;) {
        int64_t ask_ns = when_to_ask(b);
        if (!b->asked)
            due__link_expect(b->link);
        int rc = due__link_reply(b->link, &reply, rung ? 0 : due__ns_first(until_ns, ask_ns));
        if (rc == DUE_EAGAIN && !rung && due__mono_ns() >= ask_ns)
            ask(b);
        if (rc == DUE_EAGAIN)
            return rung;
        if (rc != 0) {
            be_deaf(b);
            return rung ? rung : DUE_ESTORE;
        }
        rc = understand(b, reply, heard, !rung);
        if (rc < 0)
            return rc;
        rung = rung || rc;
    }
}

int due__bell_open(struct due__redis *s, int64_t until_ns)
{
    struct due__share_bell *b = &s->share->bell;

    for (;;) {
        bool fresh = false;
        int rc = due__link_up(b->link, &fresh, until_ns);

        if (rc == 0)
            rc = subscribe(b, until_ns);
        if (rc == 0 || rc == DUE_EAGAIN || rc == DUE_EACCES)
            return rc;
        if (until_ns <= due__mono_ns())
            return DUE_EAGAIN;
    }
}

int due__bell_listen(struct due__redis *s, struct due_heard *heard, int64_t until_ns)
{
    struct due__share_bell *b = &s->share->bell;
    bool fresh = false;

    *heard = (struct due_heard){ .alarm_ns = 0 };
    if (b->link == NULL)
        return DUE_EAGAIN;
    pthread_mutex_lock(&b->lock);
    bool other = b->heard != 0 && b->heard != b->turn;
    pthread_mutex_unlock(&b->lock);
    if (other)
        be_deaf(b);
    if (!due__link_is_up(b->link)) {
        b->heard = 0;
        b->asked = b->begun = false;
    }
    if (due__link_up(b->link, &fresh, until_ns) != 0)
        return DUE_EAGAIN;
    if (b->heard == 0)
        return subscribe(b, until_ns) == 0 ? 1 : DUE_EAGAIN;
    int rc = hear(s, heard, until_ns);
    return rc == DUE_ESTORE ? DUE_EAGAIN : rc;
}
