/* words.c - each change of a job's word, against the table of src/mem/word.c: none but those, and
 * all of them.
 */
#include "words.h"

#include <stdio.h>

#include "engine.h"
#include "mem/word.h"

static uint16_t seen[DUE__STATES][DUE__STATES];

/* What is a bit of a change called? */
static const char *const bits[16] = {
    [0] = "the change itself", [1] = "another stamp",   [2] = "another generation",
    [4] = "LINKED set",        [5] = "READY set",       [6] = "HELD set",
    [7] = "PASSED set",        [8] = "LINKED cleared",  [9] = "READY cleared",
    [10] = "HELD cleared",     [11] = "PASSED cleared",
};

static const char *const states[DUE__STATES] = {
    [DUE__FREE] = "FREE",         [DUE__WAITING] = "WAITING", [DUE__MOVING] = "MOVING",
    [DUE__LEASED] = "LEASED",     [DUE__CLAIMED] = "CLAIMED", [DUE__DEAD] = "DEAD",
    [DUE__DONE] = "DONE",         [DUE__SENT] = "SENT",       [DUE__DEFERRED] = "DEFERRED",
    [DUE__CHANGING] = "CHANGING",
};

static const char *name_of(uint64_t w)
{
    const char *name = states[due__word_state(w)];

    return name != NULL ? name : "no state";
}

void due__word_moves(uint64_t from, uint64_t to)
{
    seen[due__word_state(from)][due__word_state(to)] |= (uint16_t)due__word_change(from, to);
    if (!due__word_may(from, to))
        explore_fail("a job's word %llx (%s) becomes %llx (%s), which is in no table",
                     (unsigned long long)from, name_of(from), (unsigned long long)to, name_of(to));
}

uint64_t due__word_peek(const uint64_t *word)
{
    bool running = engine.running;

    engine.running = false; /* without a step */
    uint64_t w = due__load_relaxed(word);
    engine.running = running;
    return w;
}

unsigned words_report(void)
{
    unsigned missed = 0;

    for (unsigned from = 0; from < DUE__STATES; from++) {
        for (unsigned to = 0; to < DUE__STATES; to++) {
            unsigned never = due__word_allowed[from][to] & ~(unsigned)seen[from][to];
            for (unsigned bit = 0; never != 0; never >>= 1, bit++) {
                if (!(never & 1))
                    continue;
                printf("FAILED  %s -> %s is allowed and was never seen: %s\n", name_of(from),
                       name_of(to), bits[bit]);
                missed++;
            }
        }
    }
    return missed;
}
