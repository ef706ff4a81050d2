/* bias.c - scenarios of a lock that is biased (lock.c, L2): alone, and as that of a queue.
 *
 * The first thread of a scenario has the bias from the beginning, or gets it on the way.
 */
#include "acts.h"
#include "engine.h"
#include "os/lock.h"
#include "queue/counts.h"

/* ---- The lock ---- */

struct bias_lab {
    struct due__lock lock;
    uint32_t inside;  /* A  relaxed: how many are */
    uint32_t tenures; /* A  relaxed: counted by who is inside */
    uint32_t put;     /* A  as a producer's node */
    uint32_t knock;   /* A  as a producer's knock */
    uint32_t taken;   /* A  relaxed: by who is inside */
};
static struct bias_lab *bias_lab;

static void bias_to(struct due__lock *l, uint32_t thread)
{
    l->owner = thread;
    l->bias = thread;
}

/* In a tenure: nobody else is, and what the last one wrote is there. */
static void hold(void)
{
    struct bias_lab *b = bias_lab;

    uint32_t inside = due__load_relaxed(&b->inside);
    explore_check(inside == 0, "somebody else is inside");
    due__store_relaxed(&b->inside, 1);
    uint32_t tenures = due__load_relaxed(&b->tenures);
    due__store_relaxed(&b->tenures, tenures + 1);
    due__store_relaxed(&b->inside, 0);
    due__lock_release(&b->lock);
}

static void acquire_times(void *n)
{
    for (uintptr_t i = 0; i < (uintptr_t)n; i++) {
        due__lock_acquire(&bias_lab->lock);
        hold();
    }
}

/* Who is inside does not have the bias any more once it was taken away: so he does what is to be
 * done by those who have it no longer. */
static void acquire_and_ask(void *arg)
{
    struct due__lock *l = &bias_lab->lock;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        due__lock_acquire(l);
        bool lost = due__load_seq(&l->bias) != 1; /* no edge: it does not come back meanwhile */
        explore_check(!lost || !due__lock_is_biased(l), "it was taken away, and counts still");
        hold();
    }
}

static void open_lock(void)
{
    bias_lab = explore_new(sizeof *bias_lab);
    due__lock_init(&bias_lab->lock);
}

static void lock_setup(void)
{
    open_lock();
    bias_to(&bias_lab->lock, 1);
    explore_thread("owner", acquire_times, as_arg(2));
    explore_thread("other", acquire_times, as_arg(1));
    explore_thread("third", acquire_times, as_arg(1));
}

static void lost_setup(void)
{
    open_lock();
    bias_to(&bias_lab->lock, 1);
    explore_thread("owner", acquire_and_ask, NULL);
    explore_thread("other", acquire_times, as_arg(2));
}

static void lock_check(void)
{
    explore_check(!due__lock_held(&bias_lab->lock), "it is still held");
    explore_check(bias_lab->tenures == 4, "%u", bias_lab->tenures);
}

/* It is granted after each second tenure in a row. */
static void granted_setup(void)
{
    explore_bias = 1;
    open_lock();
    due__lock_init_biased(&bias_lab->lock);
    explore_thread("one", acquire_times, as_arg(3));
    explore_thread("two", acquire_times, as_arg(4)); /* once revoked it takes one more */
}

static void granted_check(void)
{
    explore_check(!due__lock_held(&bias_lab->lock), "it is still held");
    explore_check(bias_lab->tenures == 7, "%u", bias_lab->tenures);
}

/* As E1 has it: put, knock, try; whoever has been inside looks whether somebody has knocked, and
 * then takes what was put. */
static void take_all(void)
{
    struct bias_lab *b = bias_lab;

    do {
        due__xchg_seq(&b->knock, 0);
        uint32_t put = due__load_seq(&b->put);
        due__store_relaxed(&b->taken, put);
        due__lock_release(&b->lock);
    } while (due__load_seq(&b->knock) != 0 && due__lock_try(&b->lock));
}

static void put_and_try(void *arg)
{
    struct bias_lab *b = bias_lab;

    due__or_seq(&b->put, 1u << (uintptr_t)arg);
    due__xchg_seq(&b->knock, 1);
    if (due__lock_try(&b->lock))
        take_all();
}

static void put_and_try_twice(void *arg)
{
    put_and_try(arg);
    put_and_try(as_arg((unsigned)(uintptr_t)arg + 4));
}

static void knock_setup(void)
{
    open_lock();
    bias_to(&bias_lab->lock, 1);
    explore_thread("owner", put_and_try_twice, as_arg(0));
    explore_thread("other", put_and_try, as_arg(1));
}

static void knock_three_setup(void)
{
    open_lock();
    bias_to(&bias_lab->lock, 1);
    explore_thread("owner", put_and_try, as_arg(0));
    explore_thread("other", put_and_try, as_arg(1));
    explore_thread("third", put_and_try, as_arg(2));
}

static void knock_check(void)
{
    explore_check(!due__lock_held(&bias_lab->lock), "it is still held");
    explore_check(bias_lab->taken == bias_lab->put,
                  "something was put, and nobody has come: %x, %x", bias_lab->put, bias_lab->taken);
}

/* ---- The lock of a queue, and those of its shards ---- */

struct asleep {
    uint32_t says; /* A */
    uint32_t seen; /* A  relaxed */
    uint32_t had;  /* A  relaxed */
};
static struct asleep *asleep;

static void open_queue(void)
{
    lab_open_bare((due_options){ .proxies = DUE_PROXIES_NEVER });
}

/* After all that setup does itself, which takes it away. */
static void bias_queue(void)
{
    bias_to(&lab->q->lock, 1);
    for (unsigned i = 0; i < DUE__SHARDS; i++)
        bias_to(&lab->q->slab.shard[i].lock, 1);
}

static void put_two_later(void *arg)
{
    unsigned first = (unsigned)(uintptr_t)arg;

    act_put_later(as_arg(first));
    act_put_later(as_arg(first + 1));
}

/* What is put while another is inside stays in the inbox, until he comes out. */
static void queue_put_setup(void)
{
    open_queue();
    bias_queue();
    explore_thread("owner", put_two_later, as_arg(0));
    explore_thread("producer", act_put_later, as_arg(2));
    explore_thread("another", act_put_later, as_arg(3));
}

static void queue_wait_setup(void)
{
    open_queue();
    bias_queue();
    explore_thread("producer", act_put_two, as_arg(0));
    explore_thread("consumer", act_take_one, NULL);
    explore_thread("another", act_take_one, NULL);
}

static void take_twice_now(void *arg)
{
    act_take_now(arg);
    act_take_now(arg);
}

static void queue_take_setup(void)
{
    open_queue();
    lab_put(0, 0, LAB_AT(-5), 0);
    lab_put(1, 0, LAB_AT(-4), 0);
    bias_queue();
    explore_thread("owner", take_twice_now, NULL);
    explore_thread("canceller", act_cancel, as_arg(1));
    explore_thread("mover", act_move_later, as_arg(0));
}

static void close_drain(void *arg)
{
    (void)arg;
    lab_close(DUE_CLOSE_DRAIN, DUE_FOREVER);
}

/* What he counts as gone is in the sum, or he sees that the queue closes. */
static void queue_drain_setup(void)
{
    open_queue();
    lab_put(0, 0, LAB_AT(-5), 0);
    lab_put(1, 0, LAB_AT(-4), 0);
    bias_queue();
    explore_thread("owner", take_twice_now, NULL);
    explore_thread("closer", close_drain, NULL);
}

static void cancel_both(void *arg)
{
    (void)arg;
    act_cancel(as_arg(0));
    act_cancel(as_arg(1));
}

static void queue_cancel_setup(void)
{
    open_queue();
    lab_put(0, 0, LAB_AT(DUE_MS(5)), 0);
    lab_put(1, 0, LAB_AT(DUE_MS(5)), 0);
    bias_queue();
    explore_thread("owner", cancel_both, NULL);
    explore_thread("closer", close_drain, NULL);
}

/* Who puts one in, and then looks whether another sleeps; and who says that he sleeps, and then
 * looks in vain.  They do not miss each other, as if both took the lock. */
static void look_who_sleeps(void)
{
    uint32_t says = due__load_seq(&asleep->says);

    due__store_relaxed(&asleep->seen, says);
}

static void put_and_look(void *topic)
{
    lab_put(0, (int)(uintptr_t)topic, 0, 0);
    look_who_sleeps();
}

static void put_earlier_and_look(void *arg)
{
    (void)arg;
    lab_put(0, 0, LAB_AT(DUE_MS(1)), 0);
    look_who_sleeps();
}

static void say_and_look(void *arg)
{
    (void)arg;
    due__store_seq(&asleep->says, 1);
    engine_clock_forward(LAB_AT(DUE_MS(2)));
    due__store_relaxed(&asleep->had, lab_take(0, 0) >= 0);
}

/* One has looked in vain. */
static void asleep_begin(void)
{
    asleep = explore_new(sizeof *asleep);
    lab_put(1, 0, LAB_AT(DUE_MS(5)), 0);
    lab_take(0, 0);
    bias_queue();
}

static void queue_asleep_setup(void)
{
    open_queue();
    asleep_begin();
    explore_thread("owner", put_and_look, as_arg(0));
    explore_thread("sleeper", say_and_look, NULL);
}

static void queue_asleep_topics_setup(void)
{
    lab_open((due_options){ .proxies = DUE_PROXIES_NEVER });
    asleep_begin();
    explore_thread("owner", put_and_look, as_arg(2));
    explore_thread("sleeper", say_and_look, NULL);
}

static void queue_asleep_earlier_setup(void)
{
    open_queue();
    asleep_begin();
    explore_thread("owner", put_earlier_and_look, NULL);
    explore_thread("sleeper", say_and_look, NULL);
}

static void queue_asleep_check(void)
{
    explore_check(asleep->seen || asleep->had, "one sleeps, and the other has not seen it");
    lab_check();
}

#define LOCK(name_, about_, setup_, check_, quick_, deep_, walks_)                     \
    {                                                                                  \
        .name = (name_), .about = (about_), .setup = (setup_), .check = (check_),      \
        .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, .walks = walks_, \
    }

#define ASLEEP(name_, about_, setup_)                                            \
    {                                                                            \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = lab_idle, \
        .check = queue_asleep_check, .quick = EXPLORE_BOUNDS(2, 3, 0, 0),        \
        .deep = EXPLORE_BOUNDS(4, 4, 0, 0), .walks = 20,                         \
    }

const struct explore_scenario explore_scenarios_bias[] = {
    LOCK("bias_lock", "L2: the owner and two others take it", lock_setup, lock_check, (3, 1, 0, 0),
         (5, 3, 0, 1), 20),
    LOCK("bias_lost", "L2: what was just taken away does not count", lost_setup, lock_check,
         (2, 1, 0, 0), (4, 2, 0, 1), 20),
    LOCK("bias_granted", "L2: two take it, and each second time in a row it is granted",
         granted_setup, granted_check, (3, 1, 0, 0), (5, 3, 0, 1), 20),
    LOCK("bias_knock", "L2, E1: the owner and another put, knock and try", knock_setup, knock_check,
         (4, 2, 0, 0), (6, 3, 0, 0), 20),
    LOCK("bias_knock_three", "L2, E1: the same with a third", knock_three_setup, knock_check,
         (3, 1, 0, 0), (5, 2, 0, 0), 20),
    LAB("bias_put", "L2, E1: the owner puts, and two others", queue_put_setup, (1, 1, 0, 0),
        (3, 2, 0, 0), 20),
    LAB("bias_wait", "L2: the owner puts, two wait", queue_wait_setup, (1, 1, 0, 0), (3, 1, 0, 0),
        20),
    LAB("bias_take", "L2: the owner takes, others cancel and move", queue_take_setup, (2, 1, 0, 0),
        (3, 2, 0, 0), 20),
    LAB("bias_drain", "L2, C2: the owner takes the last, another drains", queue_drain_setup,
        (2, 1, 0, 0), (4, 2, 0, 0), 20),
    LAB("bias_cancel", "L2, C2: the owner cancels the last, another drains", queue_cancel_setup,
        (2, 1, 0, 0), (4, 2, 0, 0), 20),
    ASLEEP("asleep_now", "W3, L2: the owner puts and looks who sleeps, who says so looks in vain",
           queue_asleep_setup),
    ASLEEP("asleep_topics", "W3, L2: the same, with several topics", queue_asleep_topics_setup),
    ASLEEP("asleep_earlier", "W3, L2: the same, and it is due before the others",
           queue_asleep_earlier_setup),
    { .name = NULL },
};
