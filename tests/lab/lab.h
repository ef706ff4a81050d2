/* lab.h - a queue on a clock turned by hand, whose memory is counted: for the Criterion tests.
 *
 *     struct lab lab = lab_open(.start_ns = 1000);
 *     lab_enqueue(&lab, "tea", .at_ns = 1500);
 *     lab_turn_to(&lab, 1500);
 *     cr_expect_str_eq(lab_dequeue(&lab), "tea");
 *     lab_close(&lab);
 *
 * lab_close() fails the test if memory is still out, if the figures do not add up, or if a
 * discarded job was not shown.  LAB_TEST runs a test once in each of the proxies' modes; with the
 * environment variable LAB_PROXIES (adaptive, always, never) in that one only.
 */
#ifndef LAB_H
#define LAB_H

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lab/crew.h"
#include "due/due.h"
#include "lab/extra.h"
#include "lab/flaky.h"

#define LAB_TEXT    128 /* bytes of a text that lab_dequeue() can give, its NUL included */
#define LAB_ANSWERS 16  /* texts that stay valid at a time */

struct lab_state {
    struct flaky memory;
    atomic_uint discarded;         /* jobs shown to on_discard */
    due_job last_discarded;        /* */
    char discarded_text[LAB_TEXT]; /* of the last one */
    bool own_discard;              /* the test has its own hook */
    unsigned answers;
    char answer[LAB_ANSWERS][LAB_TEXT];
};

struct lab {
    due_queue *q;
    due_clock *clock; /* NULL: the queue is on a clock of the kernel */
    struct lab_state *state;
};

struct lab_options {
    int64_t start_ns;
    bool kernel;      /* on with.clock instead of a manual clock */
    due_clock *clock; /* the test's own, not freed by lab_close() */
    due_options with; /* everything else */
};

#define lab_open(...) \
    lab_open_with(&(struct lab_options){ .with.size = sizeof(due_options), __VA_ARGS__ })
struct lab lab_open_with(const struct lab_options *options);

/* Discards what is left. */
void lab_close(struct lab *lab);

/* Put a text in: lab_enqueue(&lab, "tea", .delay_ns = 5).  Its NUL is not part of it. */
#define lab_enqueue(lab, text, ...) \
    lab_enqueue_spec((lab), (text), (due_spec){ DUE_SPEC_INIT, __VA_ARGS__ })
due_id lab_enqueue_spec(struct lab *lab, const char *text, due_spec spec);

/* What an enqueue of a text under a key answers, without waiting. */
int lab_put_key(struct lab *lab, const char *key, enum due_key_policy policy, const char *text,
                due_id *id, due_spec spec);
/* Under the key "k": lab_put_as(&lab, DUE_KEY_REPLACE, "tea", NULL, .delay_ns = 5). */
#define lab_put_as(lab, policy, text, id, ...) \
    lab_put_key((lab), "k", (policy), (text), (id), (due_spec){ DUE_SPEC_INIT, __VA_ARGS__ })

/* The text of a job that is due now, done with; NULL if there is none. */
/* As due_dequeue() and due_reserve() with timeout 0; where there is a store, they wait for what is
 * under way there. */
int lab_take(struct lab *lab, due_job *job);
int lab_reserve(struct lab *lab, due_job *job, int64_t lease_ns);
const char *lab_dequeue(struct lab *lab);
const char *lab_dequeue_from(struct lab *lab, int topic);
/* The text of a job, done with. */
const char *lab_text(struct lab *lab, due_job *job);
/* What is due now, in order, as one text with blanks between; done with. */
const char *lab_dequeue_all(struct lab *lab);

void lab_turn_to(struct lab *lab, int64_t to_ns);
void lab_advance(struct lab *lab, int64_t by_ns);

int lab_topic(struct lab *lab, const char *name);
struct due_stats lab_stats(struct lab *lab);
due_info lab_find(struct lab *lab, due_id id);

/* ---- Modes ---- */

extern int lab_proxies; /* the mode of LAB_TEST; -1: as the options say */

void lab_each_mode(void (*test)(void));

#define LAB_TEST(suite, name)                    \
    static void suite##_##name##_in_mode(void);  \
    Test(suite, name, .timeout = 60)             \
    {                                            \
        lab_each_mode(suite##_##name##_in_mode); \
    }                                            \
    static void suite##_##name##_in_mode(void)

#endif
