/* URLs: what is taken from them, what is refused, and that no secret shows. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/link/link.h"

static struct due__address parsed(const char *url)
{
    struct due__address a;
    due_error error;

    cr_assert_eq(due__address_parse(&a, url, &error), 0, "%s: %s", url, error.text);
    cr_expect_str_eq(error.text, "");
    return a;
}

/* What it shows, user and password beside it: "user|password|host:6379/0". */
static void reads(const char *url, const char *expected)
{
    struct due__address a = parsed(url);
    char shown[256];
    char all[512];

    due__address_show(&a, shown, sizeof shown);
    snprintf(all, sizeof all, "%s|%s|%s", a.user != NULL ? a.user : "-",
             a.password != NULL ? a.password : "-", shown);
    cr_expect_str_eq(all, expected);
    due__address_wipe(&a);
    cr_expect_null(a.password);
}

static void refuses(const char *url, int expected)
{
    struct due__address a;
    due_error error;
    int rc = due__address_parse(&a, url, &error);

    cr_expect_eq(rc, expected, "%s: %s", url, due_error_name(rc));
    cr_expect_neq(error.text[0], '\0', "%s", url);
    cr_expect_eq(due__address_parse(&a, url, NULL), expected);
    cr_expect(a.host == NULL && a.path == NULL && a.user == NULL && a.password == NULL);
    due__address_wipe(&a);
}

Test(address, of_a_host)
{
    reads("redis://localhost", "-|-|localhost:6379/0");
    reads("redis://localhost/", "-|-|localhost:6379/0");
    reads("REDIS://Local.Host-1_x:1", "-|-|Local.Host-1_x:1/0");
    reads("redis://127.0.0.1:65535/15", "-|-|127.0.0.1:65535/15");
    reads("redis://h/2147483647", "-|-|h:6379/2147483647");
    reads("redis://[::1]", "-|-|[::1]:6379/0");
    reads("redis://[::1]:7000/3", "-|-|[::1]:7000/3");
    reads("redis://[fe80::1%25eth0]:7000", "-|-|[fe80::1%eth0]:7000/0");
    reads("redis://[fe80::1%25az.AZ_09-15chrs]", "-|-|[fe80::1%az.AZ_09-15chrs]:6379/0");
    reads("REDIS://azAZ09.-_z", "-|-|azAZ09.-_z:6379/0");
    reads("redis://u:p@[::1]", "u|p|[::1]:6379/0");
}

Test(address, of_a_socket)
{
    reads("unix:///run/redis.sock", "-|-|/run/redis.sock?db=0");
    reads("unix:///run/redis.sock?db=12", "-|-|/run/redis.sock?db=12");
    reads("unix:///a%20b%25c", "-|-|/a b%c?db=0");
    reads("unix:///a@b", "-|-|/a@b?db=0");
    reads("unix:///p", "-|-|/p?db=0");
    reads("unix://u:p@/run/r", "u|p|/run/r?db=0");
    reads("unix://:p@/run/r?db=1", "-|p|/run/r?db=1");
}

Test(address, of_users_and_passwords)
{
    reads("redis://me:secret@h", "me|secret|h:6379/0");
    reads("redis://:secret@h:1/2", "-|secret|h:1/2");
    reads("redis://me:@h", "me||h:6379/0");
    reads("redis://a%40b:%3a%2F%3f%23%40%25@h", "a@b|:/?#@%|h:6379/0");
    reads("redis://me:a:b!$&'()*+,;=@h", "me|a:b!$&'()*+,;=|h:6379/0");
    reads("redis://me:%C3%A9@h", "me|\xc3\xa9|h:6379/0");
}

static const char *const senseless[] = {
    "",
    "redis",
    "redis:",
    "redis:/h",
    "//h",
    "http://h",
    "redis://",
    "redis:///",
    "redis:///0",
    "redis://:6379",
    "redis://u:p@",
    "redis://u:p@:6379",
    "redis://@h",
    "redis://u@h",
    "redis://:@h",
    "redis://u:p@q@h",
    "redis://h:",
    "redis://h:0",
    "redis://h:65536",
    "redis://h:-1",
    "redis://h:+1",
    "redis://h: 1",
    "redis://h:1x",
    "redis://h:100000",
    "redis://h:4294967297",
    "redis://h/-1",
    "redis://h/x",
    "redis://h/1/",
    "redis://h/0/key",
    "redis://h/2147483648",
    "redis://h/99999999999999999999",
    "redis://h/18446744073709551617",
    "redis://h/00000000001",
    "redis://h:000001",
    "redis://+h",
    "redis://h?db=1",
    "redis://h/1?x=y",
    "redis://h#f",
    "redis://h/0#f",
    "redis://a b",
    "redis://h%41",
    "redis://h\n",
    "redis://h\x7f",
    "redis://h\xff",
    "redis://u:p%00@h",
    "redis://u:p%0a@h",
    "redis://u%00:p@h",
    "redis://u:%@h",
    "redis://u:%4@h",
    "redis://u:%4g@h",
    "redis://u:p%@h",
    "redis://[::1",
    "redis://[::1]x",
    "redis://[::1]:",
    "redis://[]",
    "redis://[localhost]",
    "redis://[::g]",
    "redis://[::1%25]",
    "redis://[::1%25a/b]",
    "redis://[::1%00]",
    "redis://[::1%25+]",
    "redis://[::1%25a+]",
    "redis://[fe80::1%25az.AZ_09-16chars]",
    "redis://[1111:2222:3333:4444:5555:6666:111.222.333.4444]",
    "redis://::1",
    "redis://1.2.3.4:5:6",
    "unix://",
    "unix:///",
    "unix://h/path",
    "unix://path",
    "unix:///p?",
    "unix:///p?db",
    "unix:///p?db=",
    "unix:///p?db=x",
    "unix:///p?DB",
    "unix:///p?db=1&x=2",
    "unix:///p?x=1",
    "unix:///p%00q",
    "unix:///p%0aq",
    "unix:///p\x7f",
    "unix:///p%7f",
    "unix:///p%1f",
    "unix:///p%2",
    "unix:///p#q",
    "unix://u@/p",
    "unix://u:p@",
    "unix://u:p@h/p",
};

Test(address, refuses_what_makes_no_sense)
{
    for (size_t i = 0; i < sizeof senseless / sizeof senseless[0]; i++)
        refuses(senseless[i], DUE_EINVAL);
}

/* Of what stands before the host no character may be another. */
Test(address, needs_every_character_of_its_scheme)
{
    static const char *const urls[] = { "redis://h", "unix:///h" };

    for (size_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < 7; at++) {
            char url[16];

            strcpy(url, urls[i]);
            url[at] = '_';
            refuses(url, DUE_EINVAL);
        }
    }
}

Test(address, refuses_what_is_too_long)
{
    char url[9000];

    memset(url, 'a', sizeof url);
    memcpy(url, "redis://u:", 10);
    memcpy(url + sizeof url - 3, "@h", 3);
    refuses(url, DUE_EINVAL);
    /* a long password, as some services make them */
    memcpy(url + 8000, "@h", 3);
    struct due__address a = parsed(url);
    cr_expect_eq(strlen(a.password), 8000u - 10);
    due__address_wipe(&a);
    memset(url, 'a', 400);
    memcpy(url, "redis://", 8);
    url[8 + 253] = '\0';
    a = parsed(url);
    due__address_wipe(&a);
    url[8 + 253] = 'a';
    url[8 + 254] = '\0';
    refuses(url, DUE_EINVAL);
    memset(url, 'a', 400);
    memcpy(url, "unix:///", 8);
    url[7 + 107] = '\0';
    a = parsed(url);
    due__address_wipe(&a);
    url[7 + 107] = 'a';
    url[7 + 108] = '\0';
    refuses(url, DUE_EINVAL);
}

Test(address, may_have_8192_bytes)
{
    char url[8194];

    memset(url, 'a', sizeof url);
    memcpy(url, "redis://u:", 10);
    memcpy(url + 8190, "@h", 3);
    struct due__address a = parsed(url);
    cr_expect_eq(strlen(a.password), 8190u - 10);
    due__address_wipe(&a);
    memcpy(url + 8190, "@hh", 4); /* and not the first 8192 of 8193 */
    refuses(url, DUE_EINVAL);
}

/* Also where it fills the last page. */
Test(address, keeps_passwords_of_any_length)
{
    for (int len = 3900; len < 4100; len++) {
        char url[4200];

        snprintf(url, sizeof url, "redis://u:%0*d@h", len, 7);
        struct due__address a = parsed(url);
        cr_expect_eq(strlen(a.password), (size_t)len);
        due__address_wipe(&a);
    }
}

static const struct {
    const char *url, *text, *hint;
} wrong[] = {
    { "redis://h\n", "space, a # or a control byte", "control bytes" },
    { "\nredis://h", "space, a # or a control byte", "control bytes" },
    { "redis://h#", "space, a # or a control byte", "percent-encode" },
    { "redis://", "has no host", "HOST" },
    { "redis://+h", "host has a bad byte", "percent-encode" },
    { "redis://u%0a:p@h", "user has a bad byte", "percent-encode" },
    { "redis://u:%0a@h", "password has a bad byte", "percent-encode" },
    { "redis://u@h", "user without a password", "USER:PASSWORD@" },
    { "redis://:@h", "empty user and an empty password", "leave it out" },
    { "redis://[", "brackets of the host are not closed", "" },
    { "redis://[::1", "brackets of the host are not closed", "" },
    { "redis://[::1]x", "brackets of the host are not closed", "" },
    { "redis://[h]", "no IPv6 address", "" },
    { "redis://h:0", "port is not a number", "percent-encode" },
    { "redis://h/x", "database is not a number", "/DB" },
    { "unix://", "has a path, and no host", "percent-encode" },
    { "unix://h/p", "has a path, and no host", "percent-encode" },
    { "unix:///", "no path of a socket", "unix:///PATH" },
    { "unix:///p%0a", "path of the socket has a bad byte", "percent-encode" },
    { "unix:///p?x=1", "option other than db", "?db=DB" },
    { "unix:///p?db=x", "database is not a number", "?db=DB" },
    { "rediss://h", "TLS", "tunnel" },
    { "redis-sentinel://h", "Sentinel and Cluster", "one server" },
    { "redis-cluster://h", "Sentinel and Cluster", "one server" },
    { "http://h", "does not begin with redis:// or unix://", "PASSWORD" },
};

Test(address, errors_say_what_is_wrong_and_how_it_is_right)
{
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct due__address a;
        due_error error;

        cr_expect_neq(due__address_parse(&a, wrong[i].url, &error), 0, "%s", wrong[i].url);
        cr_expect_not_null(strstr(error.text, wrong[i].text), "%s: %s", wrong[i].url, error.text);
        cr_expect_not_null(strstr(error.hint, wrong[i].hint), "%s: %s", wrong[i].url, error.hint);
    }
}

/* Pages of this process. */
static long pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long n = 0;

    cr_assert_not_null(file);
    cr_expect_eq(fscanf(file, "%ld", &n), 1);
    fclose(file);
    return n;
}

Test(address, leaves_nothing_behind)
{
    static const char *const urls[] = { "redis://me:secret@h/1", "unix://me:secret@/p",
                                        "redis://me:secret@h/x", "unix://me:secret@/p?x" };
    size_t bytes_before = 0;
    long pages_before = 0;

    for (int n = 0; n < 100; n++) {
        struct due__address a;

        (void)due__address_parse(&a, urls[n % 4], NULL);
        due__address_wipe(&a);
        if (n == 9) {
            pages_before = pages();
            bytes_before = mallinfo2().uordblks;
        }
    }
    cr_expect_eq(mallinfo2().uordblks, bytes_before);
    cr_expect_eq(pages(), pages_before);
}

Test(address, says_what_is_not_supported)
{
    refuses("rediss://h", DUE_ENOTSUP);
    refuses("rediss://u:p@h:1/2", DUE_ENOTSUP);
    refuses("rediss://h:0", DUE_EINVAL);
    refuses("redis-sentinel://a,b/c", DUE_ENOTSUP);
    refuses("redis-cluster://a,b", DUE_ENOTSUP);
}

Test(address, shows_as_much_as_there_is_room_for)
{
    struct due__address a = parsed("redis://me:secret@localhost");
    char tiny[5];

    due__address_show(&a, tiny, sizeof tiny);
    cr_expect_str_eq(tiny, "loca");
    due__address_wipe(&a);
}

/* Nothing that stands in a URL stands in an error, whatever is wrong with it. */
Test(address, errors_hold_nothing_of_the_url)
{
    static const char *const urls[] = {
        "redis://canary:canary@canary@canary",
        "redis://canary:canary/canary@canary:canary/canary",
        "redis://canary@canary",
        "redis://canary:canary%zz@canary",
        "redis://canary:canary@canary:canary",
        "redis://canary:canary@canary/canary",
        "rediss://canary:canary@canary",
        "redis-sentinel://canary:canary@canary",
        "canary://canary",
        "unix://canary:canary@canary/canary",
        "unix://canary:canary@/canary?canary",
        "unix://canary:canary@/canary?db=canary",
        "redis://canary:can ary@canary",
        "redis://canary:canary@[canary]",
    };

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct due__address a;
        due_error error;

        cr_expect_neq(due__address_parse(&a, urls[i], &error), 0, "%s", urls[i]);
        cr_expect_null(strstr(error.text, "canary"), "%s", error.text);
        cr_expect_null(strstr(error.hint, "canary"), "%s", error.hint);
    }
}

/* Whether the pages of @address are left out of core dumps. */
static bool is_not_dumped(const void *address)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool within = false;
    bool left_out = false;

    cr_assert_not_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from;
        unsigned long to;

        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            within = (unsigned long)address >= from && (unsigned long)address < to;
        if (within && strncmp(line, "VmFlags:", 8) == 0)
            left_out = strstr(line, " dd") != NULL;
    }
    fclose(maps);
    return left_out;
}

Test(address, a_password_is_not_in_core_dumps)
{
    struct due__address a = parsed("redis://me:secret@h");

    cr_expect(is_not_dumped(a.password));
    cr_expect_not(is_not_dumped(a.host));
    due__address_wipe(&a);
}

Test(address, a_link_takes_the_address_over)
{
    struct due__address a = parsed("redis://me:secret@h");
    struct due__link_limits limits = { .reply_elements = 1, .reply_bytes = 1 };
    struct due__link *l = due__link_new(&a, &limits, NULL);

    cr_assert_not_null(l);
    cr_expect(a.host == NULL && a.user == NULL && a.password == NULL);
    due__address_wipe(&a);
    due__link_free(l);
}
