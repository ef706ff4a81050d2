/* litmus.c - does the explorer show what x86 can do, and nothing else?
 *
 * Two words, a few threads of two or three operations, and what their loads may find.  Each
 * scenario says which outcomes must never come, and which one must come at least once.
 */
#include "os/atomic.h"
#include "explore.h"

struct litmus {
    uint32_t x; /* atomic */
    uint32_t y; /* atomic */
    uint32_t r1;
    uint32_t r2;
    uint32_t r3;
    uint32_t r4;
};
static struct litmus *litmus;
static unsigned seen; /* a bit for each outcome r1 + 2 * r2 of all executions */

static void outcome(void)
{
    seen |= 1u << (litmus->r1 + 2 * litmus->r2);
}

static void begin(void (*first)(void *), void (*second)(void *))
{
    litmus = explore_new(sizeof *litmus);
    seen = 0;
    explore_thread("first", first, NULL);
    explore_thread("second", second, NULL);
}

/* ---- Store buffering: each writes one word, then reads the other's ---- */

static void buffer_first(void *arg)
{
    (void)arg;
    due__store_release(&litmus->x, 1);
    litmus->r1 = due__load_seq(&litmus->y);
}

static void buffer_second(void *arg)
{
    (void)arg;
    due__store_release(&litmus->y, 1);
    litmus->r2 = due__load_seq(&litmus->x);
}

static void buffer_setup(void)
{
    begin(buffer_first, buffer_second);
}

static const char *buffer_missed(void)
{
    return seen == 0xf ? NULL : "one of the four outcomes of store buffering";
}

static void fenced_first(void *arg)
{
    (void)arg;
    due__store_seq(&litmus->x, 1);
    litmus->r1 = due__load_seq(&litmus->y);
}

static void fenced_second(void *arg)
{
    uint32_t elsewhere = 0;

    (void)arg;
    due__store_release(&litmus->y, 1);
    due__xchg_seq(&elsewhere, 1);
    litmus->r2 = due__load_seq(&litmus->x);
}

static void fenced_setup(void)
{
    begin(fenced_first, fenced_second);
}

static void fenced_check(void)
{
    explore_check(litmus->r1 == 1 || litmus->r2 == 1, "both loads overtook stores");
    outcome();
}

static const char *fenced_missed(void)
{
    return seen == 0xe ? NULL : "one of the three outcomes with fences";
}

/* One fence is not enough. */
static void half_fenced_setup(void)
{
    begin(fenced_first, buffer_second);
}

/* ---- Message passing: stores arrive in order, loads are made in order ---- */

static void message_first(void *arg)
{
    (void)arg;
    due__store_relaxed(&litmus->x, 1);
    due__store_relaxed(&litmus->y, 1);
}

static void message_second(void *arg)
{
    (void)arg;
    litmus->r1 = due__load_relaxed(&litmus->y);
    litmus->r2 = due__load_relaxed(&litmus->x);
}

static void message_setup(void)
{
    begin(message_first, message_second);
}

static void message_check(void)
{
    explore_check(litmus->r1 == 0 || litmus->r2 == 1, "the second store came before the first");
    outcome();
}

static const char *message_missed(void)
{
    return seen == 0xd ? NULL : "one of the three outcomes of message passing";
}

/* ---- Load buffering: no load sees what is written after another load that depends on it ---- */

static void late_first(void *arg)
{
    (void)arg;
    litmus->r1 = due__load_relaxed(&litmus->x);
    due__store_relaxed(&litmus->y, 1);
}

static void late_second(void *arg)
{
    (void)arg;
    litmus->r2 = due__load_relaxed(&litmus->y);
    due__store_relaxed(&litmus->x, 1);
}

static void late_setup(void)
{
    begin(late_first, late_second);
}

static void late_check(void)
{
    explore_check(litmus->r1 == 0 || litmus->r2 == 0, "both loads saw later stores");
    outcome();
}

static const char *late_missed(void)
{
    return seen == 0x7 ? NULL : "one of the three outcomes of load buffering";
}

/* ---- One's own stores are seen at once, others' at the same moment by everybody ---- */

static void own_first(void *arg)
{
    (void)arg;
    due__store_relaxed(&litmus->x, 1);
    litmus->r3 = due__load_relaxed(&litmus->x);
    litmus->r1 = due__load_relaxed(&litmus->y);
}

static void own_second(void *arg)
{
    (void)arg;
    due__store_relaxed(&litmus->y, 1);
    litmus->r4 = due__load_relaxed(&litmus->y);
    litmus->r2 = due__load_relaxed(&litmus->x);
}

static void own_setup(void)
{
    begin(own_first, own_second);
}

static void own_check(void)
{
    explore_check(litmus->r3 == 1 && litmus->r4 == 1, "a thread does not see its own store");
    outcome();
}

static void write_x(void *arg)
{
    (void)arg;
    due__store_relaxed(&litmus->x, 1);
}

static void write_y(void *arg)
{
    (void)arg;
    due__store_relaxed(&litmus->y, 1);
}

static void read_xy(void *arg)
{
    (void)arg;
    litmus->r1 = due__load_relaxed(&litmus->x);
    litmus->r2 = due__load_relaxed(&litmus->y);
}

static void read_yx(void *arg)
{
    (void)arg;
    litmus->r3 = due__load_relaxed(&litmus->y);
    litmus->r4 = due__load_relaxed(&litmus->x);
}

static void readers_setup(void)
{
    begin(write_x, write_y);
    explore_thread("third", read_xy, NULL);
    explore_thread("fourth", read_yx, NULL);
}

static void readers_check(void)
{
    explore_check(!(litmus->r1 == 1 && litmus->r2 == 0 && litmus->r3 == 1 && litmus->r4 == 0),
                  "two threads saw two stores in different orders");
    outcome();
}

#define LITMUS(name_, about_, setup_, check_, missed_)                            \
    {                                                                             \
        .name = (name_), .about = (about_), .setup = (setup_), .check = (check_), \
        .missed = (missed_), .quick = { .switches = 3, .holds = 2 },              \
        .deep = { .switches = 6, .holds = 4 }, .walks = 1                         \
    }

const struct explore_scenario explore_scenarios_litmus[] = {
    LITMUS("store_buffering", "both stores may linger while both loads pass", buffer_setup, outcome,
           buffer_missed),
    LITMUS("store_buffering_fenced", "but not past read-modify-writes", fenced_setup, fenced_check,
           fenced_missed),
    LITMUS("store_buffering_half", "one fence is not enough", half_fenced_setup, outcome,
           buffer_missed),
    LITMUS("message_passing", "stores arrive in order", message_setup, message_check,
           message_missed),
    LITMUS("load_buffering", "loads are not late", late_setup, late_check, late_missed),
    LITMUS("own_stores", "a thread sees its own stores first", own_setup, own_check, buffer_missed),
    LITMUS("two_readers", "all see stores in one order", readers_setup, readers_check,
           buffer_missed),
    { .name = NULL },
};
