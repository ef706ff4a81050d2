/* What a store is told of a job, to the last field: each change as a line of text, so that nothing
 * of it is left unsaid, and nothing said that is not so.
 *
 *     PUT tea new @10          a job that the store cannot have, with its deadline
 *     MOVE @30/10 <10          for 30, where the deadline is 10; the store has it at 10
 *     a1 f1                    attempts, failures
 *     dead:5=no <dead:5        it died at 5, for that reason; the store has it as dead since 5
 *     k:7 keeps                its key "k", to be kept for 7 when it is done; kept until then
 */
#include <stdio.h>

#include "lab/shop.h"
#include "lab/take.h"
#include "os/atomic.h"
#include "queue/queue.h"
#include "store/sender.h"

static const struct due_store_verbs *real;

/* With the key, so by one thread at a time. */
static struct told {
    char text[4096];
    size_t len;
} told;

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *format, ...)
{
    size_t room = sizeof told.text - told.len;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(told.text + told.len, room, format, args);
    va_end(args);
    cr_assert(n >= 0 && (size_t)n < room, "too much is told: %s", told.text);
    told.len += (size_t)n;
}

static void tell_extras(const due_record *r)
{
    if (r->topic[0] != '\0')
        tell(" in %s", r->topic);
    if (r->priority != 0)
        tell(" p%d", r->priority);
    if (r->headers_len > 0)
        tell(" h:%.*s", (int)r->headers_len, (const char *)r->headers);
    if (r->retry != NULL)
        tell(" r%u", r->retry->attempts_max);
    if (r->ttl_ns != 0)
        tell(" ttl%lld", (long long)r->ttl_ns);
    if (r->expires_ns != 0)
        tell(" e%lld", (long long)r->expires_ns);
    if (r->group_len > 0)
        tell(" g:%.*s", (int)r->group_len, (const char *)r->group);
    if (r->every_ns != 0)
        tell(" every%lld%s", (long long)r->every_ns, r->repeat != 0 ? "+" : "");
}

static void tell_record(const due_change *c)
{
    const due_record *r = &c->record;

    if (c->kind == DUE_CHANGE_PUT)
        tell(" %.*s%s", (int)r->len, r->len > 0 ? (const char *)r->data : "",
             c->is_new ? " new" : "");
    if (c->kind != DUE_CHANGE_DROP && c->kind < DUE_CHANGE_KEEP) {
        tell(" @%lld", (long long)r->until_ns);
        if (r->deadline_ns != r->until_ns)
            tell("/%lld", (long long)r->deadline_ns);
        if (r->attempts > 0)
            tell(" a%u", r->attempts);
        if (r->failures > 0)
            tell(" f%u", r->failures);
        tell_extras(r);
        if (r->cause != 0)
            tell(" dead%d:%lld=%s", (int)r->cause, (long long)r->died_ns,
                 r->reason != NULL ? r->reason : "");
    }
    if (c->kind != DUE_CHANGE_PUT && c->kind < DUE_CHANGE_KEEP)
        tell(" <%s%lld", c->was_dead ? "dead:" : "", (long long)c->was_ns);
}

static void tell_change(const due_change *c)
{
    static const char *const names[] = { "?",      "PUT",   "MOVE",   "BURY",    "DROP",  "KEEP",
                                         "FORGET", "BEGIN", "EXTEND", "RELEASE", "AMEND", "TOPIC" };
    const due_record *r = &c->record;

    tell("%s%s", told.len > 0 ? "; " : "", names[c->kind]);
    if (c->kind == DUE_CHANGE_TOPIC)
        tell(" %s paused %lld held %lld", r->topic, (long long)c->paused, (long long)c->held_max);
    else
        tell_record(c);
    if (r->key_len > 0)
        tell(" %.*s", (int)r->key_len, (const char *)r->key);
    if (r->key_len > 0 && r->keep_key_ns != 0)
        tell(":%lld", (long long)r->keep_key_ns);
    if (c->was_kept)
        tell(" was kept");
    if (c->key_kept_ns != 0)
        tell(" keeps%lld", (long long)c->key_kept_ns);
    if (c->held != 0 || c->lease_ns != 0 || c->anew || c->dead_max != 0 || c->keeps_pass ||
        c->keeps_room || c->revokes)
        tell(" SHARED");
}

static int tell_commit(due_store *s, const due_change *changes, size_t n, uint64_t number,
                       int64_t until_ns)
{
    int rc = real->commit(s, changes, n, number, until_ns);

    for (size_t i = 0; rc == 0 && i < n; i++)
        tell_change(&changes[i]);
    return rc;
}

static struct shop shop_told(struct lab_options with)
{
    static struct due_store_verbs verbs;
    struct shop s = { .disk = memory_disk_new(NULL) };
    due_store *any = memory_store_new(s.disk);

    real = any->verbs;
    verbs = *real;
    any->verbs->free(any);
    verbs.commit = tell_commit;
    told = (struct told){ .len = 0 };
    with.start_ns = 5;
    shop_begin(&s, with, &verbs);
    shop_wait_loaded(&s);
    return s;
}

static const char *said(struct shop *s)
{
    static char text[sizeof told.text];
    struct due__commits *c = s->lab.q->commits;

    while (due__load_seq(&c->lacking))
        crew_sleep(DUE_MS(1));
    cr_assert_eq(due_flush(s->lab.q, DUE_S(30)), 0);
    due__lock_acquire(&c->key);
    memcpy(text, told.text, told.len + 1);
    told.len = 0;
    told.text[0] = '\0';
    due__lock_release(&c->key);
    return text;
}

#define expect_told(s, text) cr_expect_str_eq(said(s), text)

/* The disk has lost its last batches, and with the next job that is found out. */
static void lose(struct shop *s, size_t batches)
{
    memory_store_fault(s->store, (struct memory_fault){
                                     .verb = MEMORY_READY, .kind = MEMORY_LOSE, .count = batches });
    lab_enqueue(&s->lab, "next", .at_ns = 90);
}

static due_job leased(struct shop *s)
{
    due_job job;

    cr_assert_eq(lab_reserve(&s->lab, &job, 50), 0);
    return job;
}

/* ---- Its life ---- */

Test(stored_told, all_of_a_job_when_it_comes, .timeout = 60)
{
    struct shop s = shop_told((struct lab_options){ 0 });
    due_retry three = { .kind = DUE_RETRY_FIXED, .attempts_max = 3, .delay_ns = 1 };
    int topic = lab_topic(&s.lab, "t");

    lab_enqueue(&s.lab, "tea", .at_ns = 10);
    expect_told(&s, "PUT tea new @10");
    lab_enqueue(&s.lab, "", .at_ns = 0, .flags = DUE_SPEC_AT);
    expect_told(&s, "PUT  new @0");
    lab_enqueue(&s.lab, "tea", .delay_ns = 10, .topic = topic, .priority = 7,
                .more = EXTRA(.headers = "a: b", .headers_len = 4, .ttl_ns = 20, .group = "x",
                              .group_len = 1));
    expect_told(&s, "PUT tea new @15 in t p7 h:a: b ttl20 g:x");
    lab_enqueue(&s.lab, "tea", .at_ns = 11,
                .more = EXTRA(.retry = &three, .expires_ns = 99, .every_ns = 6,
                              .repeat = DUE_REPEAT_AFTER));
    expect_told(&s, "PUT tea new @11 r3 e99 every6+");
    shop_close(&s);
}

Test(stored_told, what_changes_of_a_job_that_is_there, .timeout = 60)
{
    struct shop s = shop_told((struct lab_options){ 0 });
    due_id id = lab_enqueue(&s.lab, "tea", .at_ns = 10);
    due_job job;

    said(&s);
    cr_expect_eq(due_reschedule(s.lab.q, id, 20), 0);
    expect_told(&s, "MOVE @20 <10");
    cr_expect_eq(due_promote(s.lab.q, id), 0);
    expect_told(&s, "MOVE @5 <20");
    cr_expect_eq(due_update(s.lab.q, id, "milk", 4), 0);
    expect_told(&s, "PUT milk @5");
    cr_expect_eq(due_amend(s.lab.q, id,
                           &(due_spec){ DUE_SPEC_INIT, .at_ns = 30, .flags = DUE_SPEC_AT,
                                        .priority = 3, .data = "tea", .len = 3 },
                           DUE_SET_TIME | DUE_SET_DATA),
                 0);
    expect_told(&s, "PUT tea @30");
    lab_turn_to(&s.lab, 30);
    job = leased(&s);
    cr_expect_eq(due_nack(&job, 10), 0);
    expect_told(&s, "MOVE @40/30 a1 f1 <30");
    lab_turn_to(&s.lab, 40);
    job = leased(&s);
    cr_expect_eq(due_snooze(&job, 10), 0);
    expect_told(&s, "MOVE @50/30 a1 f1 <40");
    lab_turn_to(&s.lab, 50);
    job = leased(&s);
    cr_expect_eq(due_bury(&job, "no"), 0);
    expect_told(&s, "BURY @50/30 a2 f1 dead1:50=no <50");
    lab_turn_to(&s.lab, 60);
    cr_expect_eq(due_update(s.lab.q, id, "milk", 4), 0);
    expect_told(&s, "PUT milk @30 a2 f1 dead1:50=no");
    cr_expect_eq(due_kick(s.lab.q, id), 0);
    expect_told(&s, "MOVE @60/30 <dead:50");
    job = leased(&s);
    cr_expect_eq(due_ack(&job), 0);
    expect_told(&s, "DROP <60");
    shop_close(&s);
}

Test(stored_told, after_a_loss_each_as_it_is, .timeout = 60)
{
    struct shop s = shop_told((struct lab_options){ 0 });
    due_id id = lab_enqueue(&s.lab, "waits", .at_ns = 80);
    due_job job, held;

    lab_enqueue(&s.lab, "held", .at_ns = 6);
    lab_turn_to(&s.lab, 6);
    held = leased(&s);
    lab_enqueue(&s.lab, "failed", .at_ns = 6);
    job = leased(&s);
    cr_expect_eq(due_nack(&job, 40), 0);
    lab_enqueue(&s.lab, "dead", .at_ns = 6);
    job = leased(&s);
    cr_expect_eq(due_bury(&job, "no"), 0);
    cr_expect_eq(due_reschedule(s.lab.q, id, 70), 0);
    said(&s);
    lose(&s, 1);
    expect_told(&s, "PUT next new @90; PUT dead @6 a1 dead1:6=no; PUT failed @46/6 a1 f1; PUT held "
                    "@6 a1; PUT waits @70");
    cr_expect_eq(due_ack(&held), 0);
    expect_told(&s, "DROP <6");
    shop_close(&s);
}

/* ---- Ends ---- */

Test(stored_told, how_many_attempts_it_had_where_they_are_limited, .timeout = 60)
{
    struct shop s = shop_told((struct lab_options){ 0 });
    due_retry two = { .kind = DUE_RETRY_FIXED, .attempts_max = 2, .delay_ns = 3 };
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.retry = &two, .ttl_ns = 500));
    expect_told(&s, "PUT tea new @5 r2 ttl500");
    job = leased(&s);
    expect_told(&s, "MOVE @5 a1 r2 ttl500 <5");
    cr_expect_eq(due_nack(&job, DUE_DELAY_POLICY), 0);
    expect_told(&s, "MOVE @8/5 a1 f1 r2 ttl500 <5");
    lab_turn_to(&s.lab, 8);
    job = leased(&s);
    expect_told(&s, "MOVE @8/5 a2 f1 r2 ttl500 <8");
    lab_turn_to(&s.lab, 100); /* its lease ends by itself */
    cr_expect_null(lab_dequeue(&s.lab));
    expect_told(&s, "BURY @8/5 a2 f2 r2 ttl500 dead2:100= <8");
    uint64_t kicked;
    cr_expect_eq(due_kick_all(s.lab.q, DUE_ALL_TOPICS, &kicked), 0);
    expect_told(&s, "PUT tea @100/5 r2");
    due_job_done(&job);
    shop_close(&s);
}

Test(stored_told, that_its_time_is_over, .timeout = 60)
{
    struct shop s = shop_told((struct lab_options){ 0 });

    lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.ttl_ns = 10));
    expect_told(&s, "PUT tea new @5 ttl10");
    lab_turn_to(&s.lab, 20);
    cr_expect_null(lab_dequeue(&s.lab));
    expect_told(&s, "BURY @5 ttl10 dead3:20= <5");
    uint64_t cleared;
    cr_expect_eq(due_clear_dead(s.lab.q, DUE_ALL_TOPICS, &cleared), 0);
    expect_told(&s, "DROP <dead:20");
    shop_close(&s);
}

Test(stored_told, when_its_next_round_is, .timeout = 60)
{
    struct shop s = shop_told((struct lab_options){ 0 });
    due_job job;

    lab_enqueue(&s.lab, "tea", .at_ns = 5, .more = EXTRA(.every_ns = 10));
    expect_told(&s, "PUT tea new @5 every10");
    job = leased(&s);
    cr_expect_eq(due_nack(&job, 1), 0);
    expect_told(&s, "MOVE @6/5 a1 f1 every10 <5");
    lab_turn_to(&s.lab, 6);
    job = leased(&s);
    cr_expect_eq(due_ack(&job), 0);
    expect_told(&s, "MOVE @15 every10 <6");
    lab_turn_to(&s.lab, 15);
    cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
    expect_told(&s, "MOVE @25 every10 <15");
    lab_turn_to(&s.lab, 37);
    job = leased(&s);
    cr_expect_eq(due_cancel(s.lab.q, job.id, NULL), DUE_EBUSY);
    cr_expect_eq(due_ack(&job), 0);
    expect_told(&s, "DROP <25");
    shop_close(&s);
}

/* ---- Keys ---- */

Test(stored_told, whose_a_key_is_and_until_when, .timeout = 60)
{
    struct shop s = shop_told((struct lab_options){ 0 });
    due_job job;

    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, .at_ns = 5, KEEPS(7)), 0);
    expect_told(&s, "PUT tea new @5 k:7");
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REPLACE, "milk", NULL, .at_ns = 6, KEEPS(8)), 0);
    expect_told(&s, "PUT milk @6 k:8");
    lab_turn_to(&s.lab, 6);
    job = leased(&s);
    cr_expect_eq(due_ack(&job), 0);
    expect_told(&s, "DROP <6 k:8 keeps14");
    cr_expect_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, .at_ns = 6), DUE_EEXIST);
    expect_told(&s, "");
    lab_turn_to(&s.lab, 14);
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, .at_ns = 5), 0);
    expect_told(&s, "PUT tea new @5 k was kept");
    lose(&s, 1);
    expect_told(&s, "PUT next new @90; PUT tea @5 k");
    cr_expect_eq(due_cancel_key(s.lab.q, "k", 1, NULL), 0);
    expect_told(&s, "DROP <5 k");
    cr_assert_eq(shop_put_as(&s, DUE_KEY_REFUSE, "tea", NULL, .at_ns = 5), 0);
    expect_told(&s, "PUT tea new @5 k");
    cr_expect_str_eq(lab_dequeue(&s.lab), "tea");
    expect_told(&s, "DROP <5 k");
    shop_close(&s);
}

/* ---- Topics ---- */

Test(stored_told, what_holds_back_a_topic_as_a_whole, .timeout = 60)
{
    struct shop s = shop_told((struct lab_options){ 0 });
    int topic = lab_topic(&s.lab, "t");

    cr_expect_eq(due_pause(s.lab.q, topic), 0);
    expect_told(&s, "TOPIC t paused 1 held 0");
    cr_expect_eq(due_topic_limit(s.lab.q, topic, 3), 0);
    expect_told(&s, "TOPIC t paused 1 held 3");
    cr_expect_eq(due_resume(s.lab.q, DUE_ALL_TOPICS), 0);
    expect_told(&s, "TOPIC  paused 0 held 0; TOPIC t paused 0 held 3");
    lose(&s, 1);
    expect_told(&s, "TOPIC  paused 0 held 0; TOPIC t paused 0 held 3; PUT next new @90");
    cr_expect_eq(due_topic_limit(s.lab.q, topic, 0), 0);
    expect_told(&s, "TOPIC t paused 0 held 0");
    shop_close(&s);
}
