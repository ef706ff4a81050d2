/* What a link says while a server is slow to answer its greeting. */
#include "lab/redis/redis_link_lab.h"

static void serve_silence(struct fake *fake, int fd, int nth)
{
    (void)fake, (void)nth;
    fake_ignore(fd);
}

/* Until @l has been at it for a while; it is not up then. */
static void tries(struct due__link *l)
{
    bool fresh;

    for (int i = 0; i < 3; i++)
        cr_assert_eq(due__link_up(l, &fresh, in_ns(DUE_MS(10))), DUE_EAGAIN);
}

static void until_accepted(struct fake *fake, struct due__link *l, int n)
{
    bool fresh;

    while (atomic_load(&fake->accepted) < n)
        (void)due__link_up(l, &fresh, in_ns(DUE_MS(5)));
}

Test(greeting, that_is_not_answered_is_told_of, .timeout = 60)
{
    struct fake fake;

    fake_start(&fake, serve_silence, NULL);
    struct due__link *l = link_to(fake.url);
    until_accepted(&fake, l, 1);
    tries(l);
    cr_expect_str_eq(due__link_trouble(l), "no answer yet");
    due__link_free(l);
    fake_stop(&fake);
}

/* The first hears a command, and goes; the others are silent. */
static void serve_one(struct fake *fake, int fd, int nth)
{
    char text[FAKE_TEXT];

    if (nth > 0)
        fake_ignore(fd);
    else if (fake_greet(fake, fd, 2))
        fake_hear(fake, fd, text);
}

/* Who has lost a connection by what he wrote hears of that, not that the next one is slow. */
Test(greeting, that_is_not_answered_hides_nothing_from_who_is_owed_a_write, .timeout = 60)
{
    for (int owes = 0; owes < 2; owes++) {
        struct fake fake;
        char lost[256];

        fake_start(&fake, serve_one, NULL);
        struct due__link *l = link_to(fake.url);
        link_is_up(l);
        if (owes)
            due__link_owes(l);
        cr_assert_eq(link_asks(l, "SET"), 0);
        cr_expect_eq(link_fails(l, in_ns(DUE_S(20))), DUE_ESTORE);
        snprintf(lost, sizeof lost, "%s", due__link_trouble(l));
        until_accepted(&fake, l, 2);
        tries(l);
        cr_expect_str_eq(due__link_trouble(l), owes ? lost : "no answer yet");
        due__link_free(l);
        fake_stop(&fake);
    }
}
