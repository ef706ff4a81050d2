/* Several who hold back topics of a stored queue stand in a line, and may leave it at any place. */
#include "lab/memory_disk.h"
#include "lab/shop.h"
#include "queue/queue.h"
#include "store/sender.h"

#define CALLERS 4

static const char *const names[CALLERS] = { "a", "b", "c", "d" };

struct caller {
    struct crew_thread thread;
    due_queue *q;
    int topic;
};

/* A queue whose store stands with a batch, and those who want a topic to be paused. */
struct line {
    struct shop s;
    struct memory_limiter *limiter;
    struct caller callers[CALLERS];
};

static bool is_paused(struct shop *s, const char *topic)
{
    return memory_disk_setting(s->disk, topic, NULL);
}

static const struct due_store_verbs *own;
static char told[64]; /* topics, in the order in which the store was told of them */

static int commit(due_store *store, const due_change *changes, size_t n, uint64_t number,
                  int64_t until_ns)
{
    int rc = own->commit(store, changes, n, number, until_ns);

    if (rc == 0 && changes[0].kind == DUE_CHANGE_TOPIC)
        strncat(told, changes[0].record.topic, sizeof told - strlen(told) - 1);
    return rc;
}

static void line_begin(struct line *l, enum due_proxies proxies, struct due_store_verbs *verbs)
{
    struct lab_options with = { .start_ns = 5 };

    told[0] = '\0';
    l->s.disk = memory_disk_new(NULL);
    due_store *any = memory_store_new(l->s.disk);
    own = any->verbs;
    any->verbs->free(any);
    *verbs = *own;
    verbs->commit = commit;
    with.with.confirm = DUE_CONFIRM_ASYNC;
    with.with.proxies = proxies;
    shop_begin(&l->s, with, verbs);
    shop_wait_loaded(&l->s);
    l->limiter = memory_limiter_new(l->s.disk);
    for (int i = 0; i < CALLERS; i++)
        l->callers[i] = (struct caller){ .q = l->s.lab.q, .topic = lab_topic(&l->s.lab, names[i]) };
    memory_store_fault(l->s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                          .times = MEMORY_ALWAYS,
                                                          .kind = MEMORY_BLOCK,
                                                          .limiter = l->limiter });
    lab_enqueue(&l->s.lab, "tea", .at_ns = 5);
    memory_limiter_reached(l->limiter, 1);
}

static int pause_one(void *arg)
{
    struct caller *c = arg;

    return due_pause(c->q, c->topic);
}

/* One more, who waits for so long. */
static void come(struct line *l, int i, int64_t patience_ns)
{
    l->s.lab.q->commits->timeout_ns = patience_ns;
    crew_go(&l->callers[i].thread, pause_one, &l->callers[i]);
    crew_until_asleep(&l->callers[i].thread);
}

static int answer(struct line *l, int i)
{
    return crew_join(&l->callers[i].thread);
}

/* Nobody stands there any more, and nobody is counted. */
static void line_end(struct line *l)
{
    struct due__commits *c = l->s.lab.q->commits;

    due__lock_acquire(&c->calls);
    cr_expect(c->settings.first == NULL && c->settings.last == NULL);
    cr_expect_eq(c->settings.left, 0u, "%u are in line", c->settings.left);
    due__lock_release(&c->calls);
    memory_store_forgive(l->s.store);
    memory_limiter_free(l->limiter);
    shop_close(&l->s);
}

Test(settings_line, who_came_first_is_told_first, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct due_store_verbs verbs;
        struct line l;

        line_begin(&l, (enum due_proxies)mode, &verbs);
        for (int i = 0; i < CALLERS; i++)
            come(&l, i, DUE_S(60));
        cr_expect_str_empty(told);
        memory_limiter_open(l.limiter);
        for (int i = 0; i < CALLERS; i++)
            cr_expect_eq(answer(&l, i), 0);
        cr_expect_str_eq(told, "abcd");
        line_end(&l);
    }
}

/* The others have their turn, and so has who comes when he has left. */
static void leaves(int place, enum due_proxies proxies)
{
    struct due_store_verbs verbs;
    struct line l;

    line_begin(&l, proxies, &verbs);
    for (int i = 0; i < CALLERS - 1; i++)
        come(&l, i, i == place ? DUE_MS(50) : DUE_S(60));
    cr_expect_eq(answer(&l, place), DUE_ETIMEDOUT, "%d", place);
    come(&l, CALLERS - 1, DUE_S(60));
    memory_limiter_open(l.limiter);
    for (int i = 0; i < CALLERS; i++)
        if (i != place)
            cr_expect_eq(answer(&l, i), 0, "%d of %d", i, place);
    cr_expect_eq(due_flush(l.s.lab.q, DUE_S(30)), 0);
    for (int i = 0; i < CALLERS; i++)
        cr_expect_eq(is_paused(&l.s, names[i]), i != place, "%d of %d", i, place);
    line_end(&l);
}

Test(settings_line, who_has_no_more_time_leaves_it_wherever_he_stands, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++)
        for (int place = 0; place < CALLERS - 1; place++)
            leaves(place, (enum due_proxies)mode);
}

/* All leave, and the next who comes is the first. */
Test(settings_line, when_all_have_left_it_begins_anew, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct due_store_verbs verbs;
        struct line l;

        line_begin(&l, (enum due_proxies)mode, &verbs);
        for (int i = 0; i < CALLERS - 1; i++)
            come(&l, i, DUE_MS(30));
        for (int i = 0; i < CALLERS - 1; i++)
            cr_expect_eq(answer(&l, i), DUE_ETIMEDOUT);
        come(&l, CALLERS - 1, DUE_S(60));
        memory_limiter_open(l.limiter);
        cr_expect_eq(answer(&l, CALLERS - 1), 0);
        cr_expect_str_eq(told, "d");
        line_end(&l);
    }
}

/* Of the first the end is not known: he is told so, and not who stands behind him. */
Test(settings_line, who_stands_behind_a_call_in_doubt_is_not_in_doubt, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct due_store_verbs verbs;
        struct line l;

        line_begin(&l, (enum due_proxies)mode, &verbs);
        memory_limiter_open(l.limiter);
        cr_expect_eq(due_flush(l.s.lab.q, DUE_S(30)), 0);
        uint64_t before = memory_store_calls(l.s.store, MEMORY_COMMIT);
        memory_store_fault(l.s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                             .times = MEMORY_ALWAYS,
                                                             .kind = MEMORY_DOUBT_NOT });
        come(&l, 0, DUE_MS(300));
        memory_store_until(l.s.store, MEMORY_COMMIT, before + 1);
        come(&l, 1, DUE_MS(50));
        cr_expect_eq(answer(&l, 1), DUE_ETIMEDOUT);
        cr_expect_eq(answer(&l, 0), DUE_EINDOUBT);
        come(&l, 2, DUE_S(60));
        memory_store_forgive(l.s.store);
        cr_expect_eq(answer(&l, 2), 0);
        cr_expect(is_paused(&l.s, "a") && is_paused(&l.s, "c") && !is_paused(&l.s, "b"));
        line_end(&l);
    }
}

/* Nothing of them is stored, nor is any memory left of them. */
Test(settings_line, who_stands_there_at_the_close_is_told, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct due_store_verbs verbs;
        struct line l;

        line_begin(&l, (enum due_proxies)mode, &verbs);
        for (int i = 0; i < CALLERS; i++)
            come(&l, i, DUE_S(60));
        int rc = due_close(l.s.lab.q, DUE_CLOSE_DISCARD, DUE_MS(20));
        cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
        for (int i = 0; i < CALLERS; i++)
            cr_expect_eq(answer(&l, i), DUE_ECLOSED);
        memory_limiter_open(l.limiter);
        cr_expect_str_empty(told);
        line_end(&l);
    }
}

Test(settings_line, who_stands_there_when_another_has_the_jobs_is_told, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct due_store_verbs verbs;
        struct line l;

        line_begin(&l, (enum due_proxies)mode, &verbs);
        for (int i = 0; i < CALLERS; i++)
            come(&l, i, DUE_S(60));
        memory_disk_fence(l.s.disk);
        memory_limiter_open(l.limiter);
        for (int i = 0; i < CALLERS; i++)
            cr_expect_eq(answer(&l, i), DUE_EFENCED);
        cr_expect_str_empty(told);
        line_end(&l);
    }
}

/* Of the first it is not known whether it has landed; whoever stands behind him, or comes then, has
 * changed nothing. */
Test(settings_line, who_is_in_doubt_at_the_close_is_told_so, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct due_store_verbs verbs;
        struct line l;

        line_begin(&l, (enum due_proxies)mode, &verbs);
        memory_limiter_open(l.limiter);
        cr_expect_eq(due_flush(l.s.lab.q, DUE_S(30)), 0);
        uint64_t before = memory_store_calls(l.s.store, MEMORY_COMMIT);
        memory_store_fault(l.s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                             .times = MEMORY_ALWAYS,
                                                             .kind = MEMORY_DOUBT_NOT });
        come(&l, 0, DUE_S(60));
        memory_store_until(l.s.store, MEMORY_COMMIT, before + 1);
        come(&l, 1, DUE_S(60));
        int rc = due_close(l.s.lab.q, DUE_CLOSE_DISCARD, DUE_MS(20));
        cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
        cr_expect_eq(answer(&l, 0), DUE_EINDOUBT);
        cr_expect_eq(answer(&l, 1), DUE_ECLOSED);
        cr_expect_str_empty(told);
        line_end(&l);
    }
}

Test(settings_line, who_is_in_doubt_when_another_has_the_jobs_is_told_so, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++) {
        struct due_store_verbs verbs;
        struct line l;

        line_begin(&l, (enum due_proxies)mode, &verbs);
        memory_limiter_open(l.limiter);
        cr_expect_eq(due_flush(l.s.lab.q, DUE_S(30)), 0);
        uint64_t next = memory_store_calls(l.s.store, MEMORY_COMMIT) + 1;
        memory_store_fault(
            l.s.store,
            (struct memory_fault){ .verb = MEMORY_COMMIT, .call = next, .kind = MEMORY_DOUBT_NOT });
        memory_store_fault(l.s.store, (struct memory_fault){ .verb = MEMORY_COMMIT,
                                                             .call = next + 1,
                                                             .times = MEMORY_ALWAYS,
                                                             .kind = MEMORY_ANSWER,
                                                             .answer = DUE_EFENCED });
        come(&l, 0, DUE_S(60));
        cr_expect_eq(answer(&l, 0), DUE_EINDOUBT);
        come(&l, 1, DUE_S(60));
        cr_expect_eq(answer(&l, 1), DUE_EFENCED);
        cr_expect_str_empty(told);
        line_end(&l);
    }
}

/* ---- Of all topics, which is more than goes into one batch ---- */

static due_store *goes_away; /* it is not reached once it was told of some topics */

static int commit_and_leave(due_store *store, const due_change *changes, size_t n, uint64_t number,
                            int64_t until_ns)
{
    int rc = commit(store, changes, n, number, until_ns);

    if (rc == 0 && changes[0].kind == DUE_CHANGE_TOPIC)
        for (int verb = MEMORY_READY; goes_away != NULL && verb <= MEMORY_SEND; verb++)
            memory_store_fault(goes_away, (struct memory_fault){ .verb = (enum memory_verb)verb,
                                                                 .times = MEMORY_ALWAYS,
                                                                 .kind = MEMORY_AWAY });
    return rc;
}

static int pause_all(void *arg)
{
    return due_pause(arg, DUE_ALL_TOPICS);
}

/* Some of them are paused in the store, and the others are not when the queue is closed: so whoever
 * wants that is in doubt, and who stands behind him is not. */
static void some_are_told(enum due_proxies proxies)
{
    const struct memory_disk_options small = { .batch_changes = 2 };
    struct lab_options with = { .start_ns = 5, .with = { .proxies = proxies } };
    struct due_store_verbs verbs;
    struct crew_thread pauser;
    struct shop s = { .disk = memory_disk_new(&small) };
    struct caller next;

    told[0] = '\0';
    due_store *any = memory_store_new(s.disk);
    own = any->verbs;
    any->verbs->free(any);
    verbs = *own;
    verbs.commit = commit_and_leave;
    shop_begin(&s, with, &verbs);
    shop_wait_loaded(&s);
    for (int i = 0; i < CALLERS; i++)
        next = (struct caller){ .q = s.lab.q, .topic = lab_topic(&s.lab, names[i]) };
    goes_away = s.store;
    s.lab.q->commits->timeout_ns = DUE_S(60);
    crew_go(&pauser, pause_all, s.lab.q);
    while (!is_paused(&s, names[0]))
        crew_sleep(DUE_US(100));
    crew_go(&next.thread, pause_one, &next);
    crew_until_asleep(&pauser);
    crew_until_asleep(&next.thread);
    int rc = due_close(s.lab.q, DUE_CLOSE_DISCARD, DUE_MS(20));
    cr_expect(rc == 0 || rc == DUE_ETIMEDOUT, "%s", due_error_name(rc));
    cr_expect_eq(crew_join(&pauser), DUE_EINDOUBT);
    cr_expect_eq(crew_join(&next.thread), DUE_ECLOSED);
    cr_expect(!is_paused(&s, names[CALLERS - 1]));
    goes_away = NULL;
    memory_store_forgive(s.store);
    shop_close(&s);
}

Test(settings_line, who_has_paused_some_of_all_topics_at_the_close_is_in_doubt, .timeout = 60)
{
    for (int mode = 0; mode < 2; mode++)
        for (int i = 0; i < 10; i++)
            some_are_told((enum due_proxies)mode);
}

/* Whatever there is none for. */
Test(settings_line, without_memory_nothing_is_held_back, .timeout = 60)
{
    for (int pauses = 0; pauses < 2; pauses++) {
        struct shop s = shop_make(.start_ns = 5);
        struct flaky *memory = &s.lab.state->memory;
        int mail = lab_topic(&s.lab, "mail");
        unsigned refused = 0;
        int64_t limit = 0;
        int rc;

        for (;; refused++) {
            size_t live = atomic_load(&memory->live);

            flaky_fail_in(memory, refused);
            rc = pauses ? due_pause(s.lab.q, mail) : due_topic_limit(s.lab.q, mail, 1);
            memory->fail_at = FLAKY_NEVER;
            if (rc == 0)
                break;
            cr_assert_eq(rc, DUE_ENOMEM, "%s", due_error_name(rc));
            cr_expect_eq(atomic_load(&memory->live), live, "%u", refused);
            cr_expect(!memory_disk_setting(s.disk, "mail", &limit) && limit == 0);
        }
        cr_expect_gt(refused, 0u);
        cr_expect(memory_disk_setting(s.disk, "mail", &limit) ? pauses : limit == 1);
        shop_close(&s);
    }
}
