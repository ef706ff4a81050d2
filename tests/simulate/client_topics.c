/* client_topics.c - topics are paused, resumed and limited. */
#include "books.h"
#include "client.h"
#include "history.h"
#include "machine.h"
#include "settings.h"

static const char *name_of(enum setting what, unsigned value)
{
    return what == SETTING_LIMIT ? "limit" : value != 0 ? "pause" : "resume";
}

static void ask(enum setting what, int topic, unsigned value, struct setting_call *call)
{
    *call = settings_ask(what, topic, value);
    if (!call->mine)
        return;
    if (what == SETTING_LIMIT)
        rules_limit_begins(topic, value);
    else
        rules_pause_begins(topic);
}

static void told(enum setting what, int topic, unsigned value, const struct setting_call *call,
                 int rc, bool all)
{
    settings_told(what, topic, value, call, rc, all);
    if (!settings_current(call))
        return;
    if (what == SETTING_LIMIT)
        rules_limit_ends(topic, value, rc == 0);
    else
        rules_pause_ends(topic, value != 0 && rc == 0);
}

/* Where the store has nothing to do with it, it cannot fail but for memory.  Else a call about a
 * topic that is known is refused only as one about a job is. */
static void check_answer(const struct client *c, int rc)
{
    bool stored = settings_stored();
    bool may = rc == 0 || rc == DUE_ENOMEM ||
               (stored && (rc == DUE_EINDOUBT || rc == DUE_ETIMEDOUT || rc == DUE_ENOSPC ||
                           rc == DUE_EFENCED || rc == DUE_ECLOSED || rc == DUE_ESTORE));

    if (!may)
        machine_fail("thread %u: a topic is not held back: %s", c->thread, due_error_name(rc));
}

int client_hold_back(struct client *c, enum setting what, int topic, unsigned value)
{
    const struct program *p = c->program;
    struct setting_call calls[PLAN_TOPICS];
    int from = topic < 0 ? 0 : topic;
    int to = topic < 0 ? (int)PLAN_TOPICS : topic + 1;
    int number = topic < 0 ? DUE_ALL_TOPICS : p->topic[topic];
    int rc;

    history_note(c->thread, "%s? %d %u", name_of(what, value), topic, value);
    for (int i = from; i < to; i++)
        ask(what, i, value, &calls[i]);
    if (what == SETTING_LIMIT)
        rc = due_topic_limit(p->q, number, value);
    else
        rc = value != 0 ? due_pause(p->q, number) : due_resume(p->q, number);
    for (int i = from; i < to; i++)
        told(what, i, value, &calls[i], rc, topic < 0);
    history_note(c->thread, "%s! %s", name_of(what, value), due_error_name(rc));
    check_answer(c, rc);
    return rc;
}

void client_limit(struct client *c)
{
    int topic = (int)model_below(&c->random, PLAN_TOPICS);

    client_hold_back(c, SETTING_LIMIT, topic, (unsigned)model_below(&c->random, PLAN_LIMITS));
}

/* One in eight calls is about all. */
void client_pause(struct client *c)
{
    int topic = (int)model_below(&c->random, PLAN_TOPICS);

    if (model_below(&c->random, 8) == 0)
        topic = -1;
    client_hold_back(c, SETTING_PAUSE, topic, model_below(&c->random, 2) == 0);
}
