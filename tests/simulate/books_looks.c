/* books_looks.c - what calls say that look at jobs, against what the books have of these. */
#include "books.h"
#include "machine.h"
#include "store.h"
#include "world.h"

static const struct plan *plan;

void books_looks_begin(const struct plan *p)
{
    WORLD_KEEP(plan);
    plan = p;
}

static unsigned long long number_of(const struct book *b)
{
    return (unsigned long long)books_number(b);
}

void books_seen(unsigned thread, const struct book *b, const struct content *seen)
{
    const struct caller *c = books_caller(thread);

    if (!c->replaced)
        contents_seen(b, c->rule.begun, seen);
}

void books_remaining(unsigned thread, const struct book *b, int64_t least_ns, int64_t most_ns)
{
    const struct caller *c = books_caller(thread);

    if (!c->replaced)
        contents_remaining(b, c->rule.begun, least_ns, most_ns);
}

uint64_t books_bytes(unsigned thread, const struct book *b)
{
    const struct caller *c = books_caller(thread);

    return c->replaced ? 0 : contents_bytes(b, c->rule.begun);
}

/* Nobody else had a job out, or may have one, since the call began. */
static bool undisturbed(const struct caller *c)
{
    return !books_taken_since(c) && !c->rule.gap && plan->close == CLOSE_QUIET;
}

/* It has waited since before the call, for no later than that, and all the while. */
static bool has_waited(const struct caller *c, const struct book *b)
{
    return b->due_by_ns != DUE_FOREVER && b->due_since < c->rule.begun &&
           !rules_named_since(b, c->rule.begun);
}

bool books_undisturbed(unsigned thread)
{
    return undisturbed(books_caller(thread));
}

void books_next(unsigned thread, int64_t next_ns)
{
    const struct caller *c = books_caller(thread);
    const struct book *b;

    if (!undisturbed(c) || plan_has(plan, KIND_PAUSES) || plan->limit > 0 || next_ns <= books_now())
        return;
    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (has_waited(c, b) && b->due_by_ns < next_ns && b->rule.group == 0)
            machine_fail("job %llu is due in %lld ns, and the next one said to be in %lld",
                         number_of(b), (long long)(b->due_by_ns - c->clock_ns),
                         (long long)(next_ns - c->clock_ns));
}

void books_listed(unsigned thread, const bool *listed)
{
    const struct caller *c = books_caller(thread);
    const struct book *b;

    for (uint64_t i = 1; undisturbed(c) && (b = books_job(i)) != NULL; i++)
        if (has_waited(c, b) && !listed[i])
            machine_fail("job %llu has waited all the while, and is not listed", number_of(b));
}

/* May the job have been there since the call began, and have its key? */
static bool may_have_key(const struct caller *c, const struct book *b)
{
    bool out = b->gone && b->gone_event < c->rule.begun && b->calls == 0 &&
               b->returned < c->rule.begun && b->lent == 0;

    return !out && !b->content.never;
}

/* In a later life, or after a loss, what had left may be there again. */
void books_key_taken(unsigned thread, const struct book *own)
{
    const struct caller *c = books_caller(thread);
    bool stored = plan_has(plan, KIND_STORED);
    const struct book *b;

    if (stored && (store_taken() != 1 || store_has_lost() || plan_has(plan, KIND_STANDBY)))
        return;
    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (b != own && b->content.key == own->content.key && may_have_key(c, b))
            return;
    machine_fail("key %u is said to be taken, and no job has it", own->content.key);
}

/* Who has run there and waits to be tried again may be ended. */
void books_clears(int topic)
{
    struct book *b;

    for (uint64_t i = 1; (b = books_job(i)) != NULL; i++)
        if (topic < 0 || b->topic == topic)
            rules_ends(b);
}

void books_cleared(unsigned thread, int topic)
{
    const struct caller *c = books_caller(thread);
    const struct book *b;

    for (uint64_t i = 1; undisturbed(c) && (b = books_job(i)) != NULL; i++)
        if (has_waited(c, b) && (topic < 0 || b->topic == topic) && !b->gone)
            machine_fail("job %llu has waited all the while, and is not cleared", number_of(b));
}
