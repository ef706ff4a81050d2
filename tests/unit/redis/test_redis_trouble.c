/* What is said of a server that goes, and when: by itself, of a link that is down. */
#include "lab/redis/redis_link_lab.h"
#include "redis/session/session.h"

static struct {
    unsigned lines;
    char last[256];
} said;

static void keep_line(void *queue, enum due_log_level level, const char *text)
{
    (void)queue, (void)level;
    said.lines++;
    snprintf(said.last, sizeof said.last, "%s", text);
}

/* A store that was opened, and whose link has not been made. */
static struct due__redis *desk(struct due__link *link)
{
    static struct due__redis s;

    memset(&s, 0, sizeof s);
    memset(&said, 0, sizeof said);
    s.open = true;
    s.link = link;
    s.how = (struct due_store_open){ .log = keep_line };
    snprintf(s.where, sizeof s.where, "larder");
    snprintf(s.trouble, sizeof s.trouble, "it refuses the user");
    return &s;
}

Test(trouble, is_told_once_whichever_way_the_store_went)
{
    static const int gone[] = { DUE_EAGAIN, DUE_EINDOUBT, DUE_ESTORE };
    struct due__link *link = link_to("unix:///nowhere/redis.sock");

    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        struct due__redis *s = desk(link);

        due__redis_tell(s, gone[i]);
        cr_expect_eq(said.lines, 1u, "%s", due_error_name(gone[i]));
        cr_expect_not_null(strstr(said.last, "larder cannot be used"), "%s", said.last);
        due__redis_tell(s, gone[i]);
        due__redis_tell(s, 0);
        cr_expect_eq(said.lines, 1u, "%s", due_error_name(gone[i]));
        cr_expect(s->away);
    }
    due__link_free(link);
}

Test(trouble, with_the_user_is_told_with_its_reason)
{
    struct due__link *link = link_to("unix:///nowhere/redis.sock");
    struct due__redis *s = desk(link);

    due__redis_tell(s, DUE_EACCES);
    cr_expect_eq(said.lines, 1u);
    cr_expect_not_null(strstr(said.last, "it refuses the user"), "%s", said.last);
    due__link_free(link);
}

Test(trouble, that_is_none_of_the_server_is_not_told)
{
    static const int other[] = { 0, 5, DUE_ENOSPC, DUE_ENOMEM, DUE_EFENCED, DUE_ECORRUPT };
    struct due__link *link = link_to("unix:///nowhere/redis.sock");

    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        struct due__redis *s = desk(link);

        due__redis_tell(s, other[i]);
        cr_expect_eq(said.lines, 0u, "%s", due_error_name(other[i]));
        cr_expect_not(s->away);
    }
    due__link_free(link);
}

Test(trouble, is_not_told_of_a_store_that_is_not_in_use)
{
    struct due__link *link = link_to("unix:///nowhere/redis.sock");

    for (int way = 0; way < 3; way++) {
        struct due__redis *s = desk(link);

        s->open = way != 0;
        s->closed = way == 1;
        s->fenced = way == 2;
        due__redis_tell(s, DUE_ESTORE);
        cr_expect_eq(said.lines, 0u, "%d", way);
    }
    due__link_free(link);
}

Test(trouble, with_a_key_is_told_once)
{
    struct due__link *link = link_to("unix:///nowhere/redis.sock");
    struct due__redis *s = desk(link);

    due__redis_unreadable(s, "due:{q}:j", DUE_EACCES);
    cr_expect_not_null(strstr(said.last, "the user must not (DUE_EACCES)"), "%s", said.last);
    due__redis_unreadable(s, "due:{q}:j", DUE_ECORRUPT);
    cr_expect_eq(said.lines, 1u);
    s = desk(link);
    due__redis_unreadable(s, "due:{q}:j", DUE_ECORRUPT);
    cr_expect_not_null(strstr(said.last, "it holds something else (DUE_ECORRUPT)"), "%s",
                       said.last);
    due__link_free(link);
}

/* ---- What an error reply means ---- */

Test(trouble, that_passes_is_waited_for_and_other_is_an_error)
{
    static const struct {
        enum due__reply_class class;
        int rc;
        const char *text;
    } known[] = { { DUE__REPLY_FULL, DUE_ENOSPC, "the server is full" },
                  { DUE__REPLY_WRONG, DUE_ECORRUPT, "what is stored at larder makes no sense" },
                  { DUE__REPLY_DENIED, DUE_EACCES,
                    "the server refuses the user a command or a key" },
                  { DUE__REPLY_AGAIN, DUE_ESTORE, NULL },
                  { DUE__REPLY_READONLY, DUE_ESTORE, NULL },
                  { DUE__REPLY_ELSEWHERE, DUE_ESTORE, NULL },
                  { DUE__REPLY_DISK, DUE_ESTORE, NULL } };
    struct due__link *link = link_to("unix:///nowhere/redis.sock");

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct due__redis *s = desk(link);

        s->trouble[0] = '\0';
        s->armed = true;
        cr_expect_eq(due__redis_error(s, known[i].class), known[i].rc, "%zu", i);
        cr_expect_str_eq(s->trouble, known[i].text != NULL ? known[i].text : "");
        cr_expect_eq(s->armed, known[i].text != NULL, "%zu", i);
    }
    struct due__redis *s = desk(link);
    snprintf(s->denied, sizeof s->denied, "EVAL");
    due__redis_error(s, DUE__REPLY_DENIED);
    cr_expect_str_eq(s->trouble, "the server refuses the user the command EVAL");
    s->unknown = true;
    due__redis_error(s, DUE__REPLY_DENIED);
    cr_expect_str_eq(s->trouble, "the server does not know the command EVAL");
    due__link_free(link);
}

Test(trouble, at_open_says_that_nobody_was_reached)
{
    struct due__link *link = link_to("unix:///nowhere/redis.sock");
    struct due__redis *s = desk(link);

    cr_expect_eq(due__redis_unreached(s), DUE_ESTORE);
    cr_expect_not_null(strstr(s->trouble, "the server at larder cannot be reached"), "%s",
                       s->trouble);
    cr_expect_not_null(strstr(s->hint, "is the server there"), "%s", s->hint);
    due__link_free(link);
}
