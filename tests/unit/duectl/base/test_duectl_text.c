/* Bytes of others are made fit for a terminal. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/base.h"

static void shows(const char *text, const char *wanted)
{
    char shown[32];

    cr_expect_str_eq(ctl_text_show(shown, sizeof shown, text, strlen(text)), wanted);
}

Test(show, passes_on_what_can_be_printed)
{
    shows("", "");
    shows("the tea", "the tea");
    shows("th\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb5", "th\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb5");
    shows("\xc2\xa0", "\xc2\xa0");
    shows("\xd8\x9b\xe2\x80\xaf\xe2\x81\xaa", "\xd8\x9b\xe2\x80\xaf\xe2\x81\xaa");
}

Test(show, masks_controls)
{
    shows("a\nb\033[31m\x7f", "a?b?[31m?");
    shows("\xc2\x80\xc2\x9b\xc2\x9f", "???");
}

Test(show, masks_what_changes_the_direction_of_writing)
{
    shows("\xe2\x80\xaa|\xe2\x80\xab|\xe2\x80\xac|\xe2\x80\xad|\xe2\x80\xae", "?|?|?|?|?");
    shows("\xe2\x81\xa6|\xe2\x81\xa7|\xe2\x81\xa8|\xe2\x81\xa9", "?|?|?|?");
    shows("\xe2\x80\x8e|\xe2\x80\x8f|\xd8\x9c", "?|?|?");
}

Test(show, masks_bytes_that_are_no_characters)
{
    shows("\x9b", "?");
    shows("\xc0\x8a", "??");
    shows("\xe0\x80\x8a|\xed\xa0\x80", "???|???");
    shows("\xf5\x80\x80\x80|\xff|\xc3", "????|?|?");
    shows("\xf4\x90\x80\x80", "????");
}

Test(show, cuts_between_characters)
{
    char shown[8];

    cr_expect_str_eq(ctl_text_show(shown, sizeof shown, "abcd", 4), "abcd");
    cr_expect_str_eq(ctl_text_show(shown, sizeof shown, "abcde", 5), "abcd...");
    cr_expect_str_eq(ctl_text_show(shown, sizeof shown, "abc\xc3\xa9", 5), "abc...");
    cr_expect_str_eq(ctl_text_show(shown, sizeof shown, "\xc2\x9b\xc2\x9b\xc2\x9b\xc2\x9b", 8),
                     "????");
}
