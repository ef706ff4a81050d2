/* test_duectl_url.c - what is left of a URL where others can see it. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* An argument of this text is shown as @shown, and read as it was. */
static void expect_shown(const char *text, const char *shown)
{
    static char arguments[16][128]; /* each is known by where it stands */
    static unsigned used;
    char *argument = arguments[used++];
    char name[] = "duectl";
    char *argv[] = { name, argument, NULL };

    snprintf(argument, sizeof arguments[0], "%s", text);
    ctl_urls_hide(2, argv);
    cr_expect_str_eq(argument, shown);
    cr_expect_str_eq(ctl_url_of(argument), text);
}

Test(url, is_shown_without_its_user_and_its_password)
{
    expect_shown("redis://u:secret@h/0", "redis://********@h/0");
    expect_shown("--store=redis://u:secret@h/0", "--store=redis://********@h/0");
    expect_shown("unix://:secret@/run/r?db=1", "unix://*******@/run/r?db=1");
    expect_shown("redis://h/0", "redis://h/0");
    expect_shown("unix:///run/r", "unix:///run/r");
}

/* It is no URL that can be used, but a password that somebody has typed. */
Test(url, is_shown_without_a_password_that_has_an_at_in_it)
{
    expect_shown("redis://u:top@secret@h/0", "redis://************@h/0");
    expect_shown("--store=redis://u:@@@h", "--store=redis://****@h");
    expect_shown("unix://:top@secret@/run/r", "unix://***********@/run/r");
}

Test(url, of_the_environment_is_hidden_likewise)
{
    char name[] = "duectl";
    char *argv[] = { name, NULL };

    setenv("DUE_STORE_URL", "redis://u:top@secret@h/0", 1);
    const char *shown = getenv("DUE_STORE_URL");
    ctl_urls_hide(1, argv);
    cr_expect_str_eq(shown, "redis://************@h/0");
    cr_expect_null(getenv("DUE_STORE_URL"), "commands are told it");
    cr_expect_str_eq(ctl_url_of(NULL), "redis://u:top@secret@h/0");
}
