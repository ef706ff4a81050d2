/* sweep.c - scenarios of a look whether to sweep (compaction.c), by who cannot have the lock.
 *
 * Either he looks himself, or he leaves word, and whoever has the lock looks for him (E1).  That
 * somebody has looked shows: setup says when to look next, so late that nothing that comes in leads
 * there; and who looks says it anew.
 */
#include "acts.h"
#include "os/atomic.h"
#include "queue/compaction.h"

#define NEVER_YET ((size_t)1 << 30) /* slots */

static bool *asked; /* somebody has come, and has gone */

static void look(void *arg)
{
    (void)arg;
    due__sweep_sometimes(lab->q);
    (void)due__load_relaxed(&lab->q->unswept); /* no edge: others may come between */
    *asked = true;
}

static void sweep_check(void)
{
    explore_check(lab->q->unswept == 0, "a word was left, and nobody has come for it");
    explore_check(!*asked || lab->q->sweep_at != NEVER_YET, "nobody has looked");
    lab_check(); /* after that: it takes what is left, and so looks itself */
}

static void open_sweep(enum due_proxies proxies)
{
    lab_open_bare((due_options){ .proxies = proxies });
    asked = explore_new(sizeof *asked);
    lab_put(0, 0, LAB_AT(DUE_MS(5)), 0);
    lab->q->sweep_at = NEVER_YET;
    explore_thread("who cancels", look, NULL);
}

static void word_setup(void)
{
    open_sweep(DUE_PROXIES_NEVER);
    explore_thread("producer", act_put_later, as_arg(1));
    explore_thread("consumer", act_take_now, NULL);
}

/* What is left is the enqueue proxy's to find, if it is active; and it may just have gone. */
static void word_proxy_setup(void)
{
    open_sweep(DUE_PROXIES_ADAPTIVE);
    explore_thread("producer", act_put_later, as_arg(1));
    explore_thread("who calls", act_call_proxy, NULL);
}

static void word_always_setup(void)
{
    open_sweep(DUE_PROXIES_ALWAYS);
    explore_thread("canceller", act_cancel, as_arg(0));
}

/* Who has the lock has it by its bias. */
static void word_biased_setup(void)
{
    open_sweep(DUE_PROXIES_NEVER);
    explore_thread("owner", act_put_later, as_arg(1));
    lab->q->lock.owner = lab->q->lock.bias = 2; /* the second thread */
}

#define SWEEP(name_, about_, setup_, quick_, deep_)                                         \
    {                                                                                       \
        .name = (name_), .about = (about_), .setup = (setup_), .idle = lab_idle,            \
        .check = sweep_check, .quick = EXPLORE_BOUNDS quick_, .deep = EXPLORE_BOUNDS deep_, \
        .walks = 10,                                                                        \
    }

const struct explore_scenario explore_scenarios_sweep[] = {
    SWEEP("sweep_word", "E1: a word for who has the lock", word_setup, (2, 1, 0, 0), (3, 2, 0, 0)),
    SWEEP("sweep_word_proxy", "E1, E2: or for the enqueue proxy", word_proxy_setup, (1, 1, 0, 0),
          (2, 1, 0, 0)),
    SWEEP("sweep_word_always", "E1: where the proxies do all", word_always_setup, (1, 1, 0, 0),
          (2, 1, 0, 0)),
    SWEEP("sweep_word_biased", "E1, L2: for who has it by its bias", word_biased_setup,
          (2, 1, 0, 0), (4, 3, 0, 0)),
    { .name = NULL },
};
