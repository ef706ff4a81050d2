/* test_duectl_guard.c - who may see the page of a queue. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "web/web.h"

static const char token[] = "0123456789abcdef0123456789abcdef";

/* A token that differs from ours in one digit opens nothing, whichever digit that is. */
Test(guard, opens_for_the_whole_token_only)
{
    char path[sizeof token + 8];

    cr_expect(ctl_token_opens(token, "/0123456789abcdef0123456789abcdef/"));
    cr_expect(ctl_token_opens(token, "/0123456789abcdef0123456789abcdef"));
    cr_expect(ctl_token_opens(token, "/0123456789abcdef0123456789abcdef/api/look"));
    for (size_t i = 0; i <= CTL_TOKEN; i++) {
        snprintf(path, sizeof path, "/%s/", token);
        path[i] = (char)(path[i] ^ 1);
        cr_expect_not(ctl_token_opens(token, path), "digit %zu", i);
        path[i] = '\0';
        cr_expect_not(ctl_token_opens(token, path), "%zu digits", i);
    }
    cr_expect_not(ctl_token_opens(token, "/0123456789abcdef0123456789abcdef0/"));
    cr_expect_not(ctl_token_opens(token, "0123456789abcdef0123456789abcdef/"));
    cr_expect_not(ctl_token_opens(token, ""));
}

Test(guard, makes_another_token_each_time)
{
    char one[CTL_TOKEN + 1];
    char other[CTL_TOKEN + 1];

    cr_assert(ctl_token_make(one) && ctl_token_make(other));
    cr_expect_eq(strspn(one, "0123456789abcdef"), (size_t)CTL_TOKEN);
    cr_expect_eq(strlen(one), (size_t)CTL_TOKEN);
    cr_expect_str_neq(one, other);
}

/* A name that somebody else may have made to lead here is not ours. */
Test(guard, knows_two_names_of_this_machine_at_one_port)
{
    cr_expect(ctl_host_is_ours("127.0.0.1:8080", "127.0.0.1", 8080));
    cr_expect(ctl_host_is_ours("localhost:8080", "127.0.0.1", 8080));
    cr_expect(ctl_host_is_ours("LocalHost:8080", "127.0.0.1", 8080));
    cr_expect(ctl_host_is_ours("localhost", "127.0.0.1", 80));
    cr_expect_not(ctl_host_is_ours("localhost", "127.0.0.1", 8080));
    cr_expect_not(ctl_host_is_ours("127.0.0.1:8081", "127.0.0.1", 8080));
    cr_expect_not(ctl_host_is_ours("127.0.0.1:80800", "127.0.0.1", 8080));
    cr_expect_not(ctl_host_is_ours("127.0.0.1.example:8080", "127.0.0.1", 8080));
    cr_expect_not(ctl_host_is_ours("0.0.0.0:8080", "127.0.0.1", 8080));
    cr_expect_not(ctl_host_is_ours("[::1]:8080", "127.0.0.1", 8080));
    cr_expect_not(ctl_host_is_ours("", "127.0.0.1", 8080));
    cr_expect(ctl_host_is_ours("[::1]:8080", "[::1]", 8080));
    cr_expect(ctl_host_is_ours("localhost:8080", "[::1]", 8080));
    cr_expect_not(ctl_host_is_ours("127.0.0.1:8080", "[::1]", 8080));
}

Test(guard, knows_the_origin_of_its_own_page)
{
    cr_expect(ctl_origin_is_ours("http://127.0.0.1:8080", "127.0.0.1", 8080));
    cr_expect_not(ctl_origin_is_ours("https://127.0.0.1:8080", "127.0.0.1", 8080));
    cr_expect_not(ctl_origin_is_ours("http://127.0.0.1:8080/", "127.0.0.1", 8080));
    cr_expect_not(ctl_origin_is_ours("http://127.0.0.1", "127.0.0.1", 8080));
    cr_expect_not(ctl_origin_is_ours("127.0.0.1:8080", "127.0.0.1", 8080));
    cr_expect_not(ctl_origin_is_ours("null", "127.0.0.1", 8080));
    cr_expect_not(ctl_origin_is_ours("", "127.0.0.1", 8080));
}
