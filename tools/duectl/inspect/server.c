/* server.c - questions to a server, for the commands that look at one. */
#define _GNU_SOURCE
#include "inspect/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_NS DUE_S(3)
#define ANSWER_NS  DUE_S(30)
#define QUIET_NS   DUE_S(1) /* until it is said what is waited for */

/* ---- Questions and answers ------------------------------------------------------------------- */

/* Once. */
static void say_waiting(struct ctl_server *s)
{
    if (!s->awaited)
        fprintf(stderr, "duectl: waits for the server at %s: %s\n", s->where,
                due__link_trouble(s->link));
    s->awaited = true;
}

static int connect_to(struct ctl_server *s)
{
    int64_t now = due__mono_ns();
    bool fresh;
    int rc = due__link_up(s->link, &fresh, now + QUIET_NS);

    if (rc != DUE_EAGAIN)
        return rc;
    say_waiting(s);
    return due__link_up(s->link, &fresh, now + CONNECT_NS);
}

int ctl_server_open(struct ctl_server *s, const char *url)
{
    static const struct due__link_limits limits = { .connect_ns = CONNECT_NS,
                                                    .answer_ns = ANSWER_NS,
                                                    .backoff_min_ns = DUE_MS(50),
                                                    .backoff_max_ns = DUE_S(1),
                                                    .reply_elements = (size_t)1 << 22,
                                                    .reply_bytes = (size_t)1 << 30 };
    struct due__address address;
    due_error error;
    int rc = due__address_parse(&address, url, &error);

    if (rc != 0) {
        fprintf(stderr, "duectl: %s%s%s\n", error.text, error.hint[0] == '\0' ? "" : "; ",
                error.hint);
        return CTL_USAGE;
    }
    due__address_show(&address, s->where, sizeof s->where);
    s->link = due__link_new(&address, &limits, "duectl");
    if (s->link == NULL) {
        fprintf(stderr, "duectl: %s\n", due_error_text(DUE_ENOMEM));
        return CTL_BROKEN;
    }
    s->awaited = s->strange = false;
    rc = connect_to(s);
    if (rc == 0)
        return 0;
    fprintf(stderr, "duectl: %s: cannot connect: %s\n", s->where, due__link_trouble(s->link));
    ctl_server_close(s);
    return CTL_BROKEN;
}

/* Then it is not known whether anything is wrong, unless a key is something else. */
int ctl_server_status(const struct ctl_server *s)
{
    return s->strange ? CTL_FAULTS : CTL_BROKEN;
}

void ctl_server_close(struct ctl_server *s)
{
    due__link_free(s->link);
    s->link = NULL;
}

void ctl_answers_free(size_t n, redisReply **answers)
{
    for (size_t i = 0; i < n; i++) {
        freeReplyObject(answers[i]);
        answers[i] = NULL;
    }
}

static int next_answer(struct ctl_server *s, redisReply **answer)
{
    int64_t now = due__mono_ns();
    int rc = s->awaited ? DUE_EAGAIN : due__link_reply(s->link, answer, now + QUIET_NS);

    if (rc != DUE_EAGAIN)
        return rc;
    say_waiting(s);
    return due__link_reply(s->link, answer, now + ANSWER_NS);
}

bool ctl_server_go(struct ctl_server *s, size_t n, redisReply **answers)
{
    int64_t until_ns = due__mono_ns() + ANSWER_NS;
    int rc = due__link_send(s->link, until_ns);
    size_t got = 0;

    memset(answers, 0, n * sizeof *answers);
    while (rc == 0 && got < n) {
        rc = next_answer(s, &answers[got]);
        s->strange = s->strange || (rc == 0 && due__reply_is_other_type(answers[got]));
        got += rc == 0;
    }
    if (rc == 0)
        return true;
    ctl_answers_free(got, answers);
    ctl_progress_end();
    fprintf(stderr, "duectl: %s: no answer: %s\n", s->where, due__link_trouble(s->link));
    return false;
}

redisReply *ctl_server_ask(struct ctl_server *s, const char *const *words)
{
    redisReply *answer = NULL;
    size_t n = 0;

    while (words[n] != NULL)
        n++;
    due__link_words(s->link, n, words);
    return ctl_server_go(s, 1, &answer) ? answer : NULL;
}

const char *ctl_shown(char shown[CTL_SHOWN], const char *text, size_t len)
{
    return ctl_text_show(shown, CTL_SHOWN, text, len);
}

bool ctl_answer_is(const redisReply *answer, int type, const char *what)
{
    char shown[CTL_SHOWN];

    if (answer == NULL)
        return false;
    if (answer->type == type)
        return true;
    ctl_progress_end();
    if (answer->type == REDIS_REPLY_ERROR)
        fprintf(stderr, "duectl: %s: the server says: %s\n", what,
                ctl_shown(shown, answer->str, (size_t)answer->len));
    else
        fprintf(stderr, "duectl: %s: an answer that makes no sense\n", what);
    return false;
}

void ctl_info_value(const redisReply *info, const char *name, char *value, size_t room)
{
    size_t len = strlen(name);
    const char *at = due__reply_is_text(info) ? info->str : NULL;

    value[0] = '\0';
    for (; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, len) == 0 && at[len] == ':') {
            size_t n = strcspn(at + len + 1, "\r\n");

            ctl_shown(value, at + len + 1, n < room - 4 ? n : room - 4);
            return;
        }
    }
}
