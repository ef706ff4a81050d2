/* The small things a link is made of: its buffer, its pauses, its secrets, its ears. */
#include <criterion/criterion.h>
#include <hiredis.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "redis/link/backoff.h"
#include "redis/link/link_inside.h"
#include "redis/keys/keys.h"
#include "redis/read/read.h"
#include "redis/resp/bytes.h"
#include "redis/os/secret.h"
#include "redis/owner/owner.h"
#include "redis/resp/reader.h"
#include "redis/resp/reply.h"
#include "base/time.h"
#include "base/wait.h"

static void holds(const struct due__bytes *b, const char *text)
{
    cr_expect_not(b->failed);
    cr_assert_eq(b->len, strlen(text));
    cr_expect_arr_eq(b->at, text, b->len);
}

Test(bytes, are_commands_as_the_server_reads_them)
{
    struct due__bytes b = { 0 };

    due__bytes_command(&b, 4);
    due__bytes_text(&b, "SET");
    due__bytes_argument(&b, NULL, 0);
    due__bytes_number(&b, INT64_MIN);
    due__bytes_number(&b, 0);
    holds(&b, "*4\r\n$3\r\nSET\r\n$0\r\n\r\n$20\r\n-9223372036854775808\r\n$1\r\n0\r\n");
    due__bytes_clear(&b, 1);
    due__bytes_number(&b, INT64_MAX);
    holds(&b, "$19\r\n9223372036854775807\r\n");
    due__bytes_clear(&b, 1);
    due__bytes_secret(&b, "pass");
    due__bytes_secret(&b, "");
    due__bytes_text(&b, "x");
    holds(&b, "$4\r\npass\r\n$0\r\n\r\n$1\r\nx\r\n");
    due__bytes_free(&b);
}

Test(bytes, grow_and_give_back)
{
    static char big[3000000];
    struct due__bytes b = { 0 };

    due__bytes_argument(&b, big, 10);
    size_t small = b.room;
    due__bytes_argument(&b, big, sizeof big);
    cr_expect_geq(b.room, sizeof big);
    due__bytes_clear(&b, (size_t)1 << 20);
    cr_expect_eq(b.room, (size_t)1 << 20);
    cr_expect_eq(b.len, 0u);
    due__bytes_clear(&b, (size_t)2 << 20);
    cr_expect_eq(b.room, (size_t)1 << 20);
    cr_expect_lt(small, 10000u);
    due__bytes_free(&b);
}

Test(bytes, remember_what_had_no_room)
{
    char room[16];
    struct due__bytes b = { .at = room, .room = sizeof room, .fixed = true };

    due__bytes_text(&b, "more than there is room for");
    cr_expect(b.failed);
    due__bytes_text(&b, "");
    cr_expect(b.failed);
    cr_expect_eq(b.len, 0u);
    due__bytes_clear(&b, 1);
    cr_expect_not(b.failed);
    due__bytes_argument(&b, room, SIZE_MAX);
    cr_expect(b.failed);
}

/* Each pause lies between half and all of what doubles, up to the cap; and anywhere there. */
Test(backoff, doubles_up_to_its_cap_with_chance)
{
    struct due__backoff b;
    int64_t whole = 50;
    int64_t shortest = 400, longest = 0;

    due__backoff_init(&b, 50000000, 400000000, 42);
    for (int i = 0; i < 100; i++) {
        int64_t pause = due__backoff_next(&b) / 1000000;

        cr_expect(pause >= whole / 2 && pause <= whole, "%d: %d of %d", i, (int)pause, (int)whole);
        if (whole == 400 && pause < shortest)
            shortest = pause;
        if (whole == 400 && pause > longest)
            longest = pause;
        whole = whole * 2 < 400 ? whole * 2 : 400;
    }
    cr_expect_lt(shortest, 220);
    cr_expect_gt(longest, 380);
}

Test(backoff, is_never_nothing)
{
    static const int64_t odd[] = { INT64_MIN, -1, 0, 1, INT64_MAX };

    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 5; j++) {
            struct due__backoff b;

            due__backoff_init(&b, odd[i], odd[j], 0);
            for (int n = 0; n < 100; n++) {
                int64_t pause = due__backoff_next(&b);

                cr_assert(pause >= 500000 && pause <= INT64_C(3600000000000));
            }
        }
    }
}

/* ---- When to connect again ---- */

/* How often it has failed, once a link goes down that was like this; *@pause_ns: until it may be
 * made again. */
static int failures_after(enum due__link_state state, uint64_t answers, bool owes,
                          int64_t *pause_ns)
{
    struct due__link l = { .state = state, .answers = answers, .owes = owes };

    due__backoff_init(&l.backoff, DUE_MS(10), DUE_S(1000), 7);
    l.backoff.failures = 5;
    l.up_ns = due__mono_ns();
    due__link_plan_retry(&l);
    *pause_ns = l.retry_ns - l.up_ns;
    return l.backoff.failures;
}

Test(retry, begins_anew_after_a_link_that_answered_and_owes_nothing)
{
    int64_t pause;

    cr_expect_eq(failures_after(DUE__LINK_UP, 1, false, &pause), 1);
    cr_expect(pause >= DUE_MS(5) && pause <= DUE_S(1), "%lld ns", (long long)pause);
    cr_expect_eq(failures_after(DUE__LINK_UP, 0, false, &pause), 6, "nothing was answered");
    cr_expect_geq(pause, DUE_MS(160));
    cr_expect_eq(failures_after(DUE__LINK_UP, 1, true, &pause), 6, "a write is not done");
    cr_expect_eq(failures_after(DUE__LINK_GREETING, 1, false, &pause), 6, "it was not up");
    cr_expect_geq(pause, DUE_MS(160));
}

Test(retry, is_at_once_after_a_link_that_lasted)
{
    struct due__link l = { .state = DUE__LINK_UP, .answers = 1 };

    due__backoff_init(&l.backoff, DUE_MS(10), DUE_MS(20), 7);
    l.up_ns = due__mono_ns() - DUE_MS(21);
    due__link_plan_retry(&l);
    cr_expect_leq(l.retry_ns, due__mono_ns());
    cr_expect_eq(l.backoff.failures, 0);
}

Test(retry, begins_anew_after_a_write_that_was_done)
{
    struct due__link l = { .state = DUE__LINK_UP, .owes = true, .backoff.failures = 5 };

    cr_expect(due__link_is_owing(&l));
    due__link_wrote(&l);
    cr_expect_not(due__link_is_owing(&l));
    cr_expect_eq(l.backoff.failures, 0);
    due__link_owes(&l);
    cr_expect(due__link_is_owing(&l));
}

/* ---- What a refusal says ---- */

static const char *command_of(const char *text)
{
    static char name[DUE__REPLY_COMMAND];
    char line[256];
    redisReply reply = { .type = REDIS_REPLY_ERROR, .str = line };

    reply.len = (size_t)snprintf(line, sizeof line, "%s", text);
    due__reply_command(&reply, name);
    return name;
}

Test(reply, names_the_command_that_it_quotes)
{
    cr_expect_str_eq(command_of("ERR unknown command 'ZADD', with"), "ZADD");
    cr_expect_str_eq(command_of("ERR unknown command `config|get`"), "config|get");
    cr_expect_str_eq(command_of("NOPERM the 'a' command"), "a");
    cr_expect_str_eq(command_of("NOPERM the 'a b' command"), "", "no command has a blank");
    cr_expect_str_eq(command_of("NOPERM the 'a` command"), "", "another mark ends it");
    cr_expect_str_eq(command_of("NOPERM the 'zadd"), "");
    cr_expect_str_eq(command_of("NOPERM ''"), "");
    cr_expect_str_eq(command_of("NOPERM"), "");
}

Test(reply, is_an_array_of_so_many_or_none)
{
    redisReply array = { .type = REDIS_REPLY_ARRAY, .elements = 3 };
    redisReply other = { .type = REDIS_REPLY_STRING, .elements = 3 };

    cr_expect(due__reply_is_array(&array, 3));
    cr_expect_not(due__reply_is_array(&array, 2));
    cr_expect_not(due__reply_is_array(&other, 3));
    cr_expect_not(due__reply_is_array(NULL, 0));
}

/* Whichever of them is another thing. */
Test(reply, is_of_texts_or_of_fields_if_each_is)
{
    redisReply text = { .type = REDIS_REPLY_STRING };
    redisReply nothing = { .type = REDIS_REPLY_NIL };
    redisReply number = { .type = REDIS_REPLY_INTEGER };
    redisReply *all[3];
    redisReply array = { .type = REDIS_REPLY_ARRAY, .elements = 3, .element = all };

    for (int i = 0; i < 3; i++) {
        all[0] = all[1] = all[2] = &text;
        cr_expect(due__reply_is_texts(&array) && due__reply_is_fields(&array, 3));
        all[i] = &nothing;
        cr_expect(!due__reply_is_texts(&array) && due__reply_is_fields(&array, 3), "%d", i);
        all[i] = &number;
        cr_expect(!due__reply_is_texts(&array) && !due__reply_is_fields(&array, 3), "%d", i);
    }
    all[2] = &text;
    cr_expect_not(due__reply_is_fields(&array, 2));
    cr_expect(!due__reply_is_texts(NULL) && !due__reply_is_fields(NULL, 0));
    cr_expect(!due__reply_is_texts(&text) && !due__reply_is_fields(&text, 0));
}

Test(secret, is_empty_and_can_be_as_long_as_it_must)
{
    char *secret = due__secret_new(100000);

    cr_assert_not_null(secret);
    for (size_t i = 0; i < 100000; i++)
        cr_assert_eq(secret[i], 0);
    memset(secret, 'x', 100000);
    due__secret_free(secret);
    due__secret_free(NULL);
    cr_expect_null(due__secret_new(SIZE_MAX));
}

Test(secret, is_measured_copied_and_searched_within_its_bounds)
{
    char copy[] = "....";

    cr_expect_eq(due__secret_length("abc", 0), 0u);
    cr_expect_eq(due__secret_length("abc", 2), 2u);
    cr_expect_eq(due__secret_length("abc", 9), 3u);
    due__secret_copy(copy, "abc", 2);
    cr_expect_str_eq(copy, "ab..");
    cr_expect_null(due__secret_find("abc", 'c', 2));
    cr_expect_str_eq(due__secret_find("abc", 'c', 3), "c");
    cr_expect_str_eq(due__secret_find("abc", 'a', 1), "abc");
}

static long mapped_pages(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages;
}

/* The link has it as long as it lives, in its greeting; whoever gave it has it no more. */
Test(secret, of_an_address_goes_with_the_link_that_it_was_given_to)
{
    const struct due__link_limits limits = { .reply_elements = 10, .reply_bytes = 1000 };
    long before = 0;

    for (int i = 0; i < 300; i++) {
        struct due__address address;

        if (i == 100)
            before = mapped_pages();
        cr_assert_eq(due__address_parse(&address, "unix://u:secret@/nobody?db=0", NULL), 0);
        struct due__link *l = due__link_new(&address, &limits, "t");
        cr_assert_not_null(l);
        cr_expect_null(address.password);
        due__link_free(l);
        due__address_wipe(&address);
    }
    cr_expect_lt(mapped_pages() - before, 100);
}

/* Else each link would keep as much as the largest reply it ever had. */
Test(reader, keeps_nothing_of_a_large_reply)
{
    enum { LARGE = 3 << 20 };
    static char said[LARGE + 32];
    struct due__reader *r = due__reader_new(10, 2 * LARGE);
    redisReply *reply;
    size_t used;

    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    int head = snprintf(said, sizeof said, "$%d\r\n", LARGE);
    memcpy(said + head + LARGE, "\r\n", 2);
    cr_assert_eq(due__reader_take(r, said, (size_t)head + LARGE + 2, &used, &reply), 1);
    freeReplyObject(reply);
    cr_expect_lt(mallinfo2().uordblks + mallinfo2().hblkhd, before + LARGE / 4);
    cr_assert_eq(due__reader_take(r, "+OK\r\n", 5, &used, &reply), 1, "it reads on");
    cr_expect_str_eq(reply->str, "OK");
    freeReplyObject(reply);
    due__reader_free(r);
}

static int read_integers(struct due__reader *r, int n)
{
    redisReply *reply = NULL;
    char said[128];
    size_t used;
    int len = snprintf(said, sizeof said, "*%d\r\n", n);

    for (int i = 0; i < n; i++)
        len += snprintf(said + len, sizeof said - (size_t)len, ":1\r\n");
    int rc = due__reader_take(r, said, (size_t)len, &used, &reply);
    if (reply != NULL)
        freeReplyObject(reply);
    due__reader_clear(r);
    return rc;
}

/* Whose bytes are few: an array of small integers takes far more memory than it has bytes. */
Test(reader, counts_96_bytes_for_each_element_of_a_reply)
{
    struct due__reader *r = due__reader_new(1000, (size_t)10 * 96 + 64); /* and the bytes */

    cr_expect_eq(read_integers(r, 10), 1);
    cr_expect_eq(read_integers(r, 11), DUE_ECORRUPT);
    due__reader_free(r);
}

Test(reader, takes_as_many_elements_as_it_may_and_no_more)
{
    struct due__reader *r = due__reader_new(10, 1 << 20);

    cr_expect_eq(read_integers(r, 10), 1);
    cr_expect_eq(read_integers(r, 11), DUE_ECORRUPT);
    due__reader_free(r);
}

static int read_text(struct due__reader *r, const char *said)
{
    redisReply *reply = NULL;
    size_t used;
    int rc = due__reader_take(r, said, strlen(said), &used, &reply);

    if (reply != NULL)
        freeReplyObject(reply);
    due__reader_clear(r);
    return rc;
}

/* To the byte: no more is asked for than was said, and that is had. */
Test(reader, takes_as_many_bytes_as_it_may_and_no_more)
{
    static const char *const says[] = { "+fine\r\n",           "+\r\n",
                                        ":12345\r\n",          "$5\r\nhello\r\n",
                                        "*2\r\n:1\r\n$-1\r\n", "*2\r\n+\r\n+\r\n" };

    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        size_t elements = says[i][0] == '*' ? 2 : 0;
        size_t counts = strlen(says[i]) + elements * DUE__READER_ELEMENT;

        for (size_t less = 0; less <= counts; less++) {
            struct due__reader *r = due__reader_new(10, counts - less);

            cr_expect_eq(read_text(r, says[i]), less == 0 ? 1 : DUE_ECORRUPT, "%zu by %zu", i,
                         counts - less);
            due__reader_free(r);
        }
    }
}

/* Arrays of one, in one another, and a number in the last. */
static int read_nested(struct due__reader *r, int depth)
{
    char said[256];
    int len = 0;

    for (int i = 0; i < depth; i++)
        len += snprintf(said + len, sizeof said - (size_t)len, "*1\r\n");
    snprintf(said + len, sizeof said - (size_t)len, ":1\r\n");
    return read_text(r, said);
}

Test(reader, takes_arrays_within_arrays_to_a_depth_and_no_deeper)
{
    struct due__reader *r = due__reader_new(10, 1 << 20);

    for (int depth = 0; depth <= 40; depth++)
        cr_expect_eq(read_nested(r, depth), depth <= 8 ? 1 : DUE_ECORRUPT, "%d", depth);
    due__reader_free(r);
}

Test(reader, refuses_what_no_server_says)
{
    static const char *const says[] = { "+a\nb\r\n",      "+a\rb\r\n",
                                        "$03\r\nabc\r\n", "$00\r\n\r\n",
                                        "$\r\n\r\n",      "$-2\r\n",
                                        "$3x\r\nabc\r\n", "$3\r\nabcd\r\n",
                                        "*01\r\n:1\r\n",  ":123456789012345678901\r\n",
                                        ":1\n2\r\n",      "!3\r\nabc\r\n" };
    struct due__reader *r = due__reader_new(10, 1 << 20);

    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        cr_expect_eq(read_text(r, says[i]), DUE_ECORRUPT, "%s", says[i]);
    cr_expect_eq(read_text(r, "$0\r\n\r\n"), 1);
    cr_expect_eq(read_text(r, "$10\r\n0123456789\r\n"), 1);
    due__reader_free(r);
}

static void meet_topics(struct due__redis *s, int round)
{
    enum { TOPICS = 100 };
    struct due__redis_topic *met[TOPICS];
    char name[32];

    for (int again = 0; again < 2; again++)
        for (int i = 0; i < TOPICS; i++) {
            size_t len = (size_t)snprintf(name, sizeof name, "%d.%d", i, round);
            struct due__redis_topic *t = due__redis_topic(s, name, len);

            cr_assert_not_null(t);
            cr_expect(again == 0 || t == met[i]);
            cr_expect_eq(t->key_len, t->name_at + len);
            cr_expect_arr_eq(t->key + t->name_at, name, len);
            met[i] = t;
        }
}

/* What EXEC answers: nothing, a refusal, or of each command a number, a status or an error. */
Test(exec, is_odd_if_it_is_not_what_exec_says)
{
    static struct due__redis s;
    static const int fine[] = { REDIS_REPLY_INTEGER, REDIS_REPLY_STATUS, REDIS_REPLY_ERROR };
    redisReply parts[3];
    redisReply *all[] = { &parts[0], &parts[1], &parts[2] };
    redisReply exec = { .type = REDIS_REPLY_ARRAY, .elements = 3, .element = all };

    s.air.queued = 3;
    for (int odd = -1; odd < 3; odd++) {
        for (int i = 0; i < 3; i++)
            parts[i] = (redisReply){ .type = i == odd ? REDIS_REPLY_STRING : fine[i] };
        cr_expect_eq(due__flight_is_odd(&s, &exec), odd >= 0, "%d", odd);
    }
    parts[2].type = REDIS_REPLY_INTEGER;
    cr_expect_not(due__flight_is_odd(&s, &exec));
    s.air.refused = 1;
    cr_expect(due__flight_is_odd(&s, &exec), "a command was refused, and yet there is an answer");
    s.air.refused = 0;
    s.air.queued = 2;
    cr_expect(due__flight_is_odd(&s, &exec), "of another number of commands");
    exec.type = REDIS_REPLY_STRING;
    cr_expect(due__flight_is_odd(&s, &exec));
    exec.type = REDIS_REPLY_NIL;
    cr_expect_not(due__flight_is_odd(&s, &exec));
    exec.type = REDIS_REPLY_ERROR;
    cr_expect_not(due__flight_is_odd(&s, &exec));
}

/* Whatever their names are, and wherever they are kept. */
Test(topics, are_met_once_each_and_all_given_back)
{
    static struct due__redis s;
    size_t before = 0;

    snprintf(s.keys.topic, sizeof s.keys.topic, "due:{q}:t:");
    s.keys.topic_len = strlen(s.keys.topic);
    for (int round = 0; round < 500; round++) {
        before = round == 100 ? mallinfo2().uordblks : before;
        meet_topics(&s, round);
        due__redis_topics_free(&s);
    }
    cr_expect_lt(mallinfo2().uordblks, before + 4096);
}

/* A job's record names its key still when another job has that. */
Test(key, is_a_jobs_own_only_if_the_server_says_so)
{
    char bytes[DUE_STORE_ID_BYTES] = { 0 };
    redisReply nobody = { .type = REDIS_REPLY_NIL };
    redisReply owner = { .type = REDIS_REPLY_STRING, .str = bytes, .len = sizeof bytes };
    const redisReply *const told[] = { &owner, &owner, &owner, &nobody, NULL };

    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        due_record record = { .key = "k", .key_len = 1, .keep_key_ns = 5 };

        bytes[sizeof bytes - 1] = i == 1;
        owner.len = i == 2 ? sizeof bytes - 1 : sizeof bytes;
        due__redis_judge_key(&record, told[i]);
        cr_expect_eq(record.key_len, i == 0 ? 1u : 0u, "%zu", i);
        cr_expect_eq(record.key != NULL, i == 0, "%zu", i);
        cr_expect_eq(record.keep_key_ns, i == 0 ? 5 : 0, "%zu", i);
    }
}

static void ring(int bell)
{
    uint64_t one = 1;

    cr_assert_eq(write(bell, &one, sizeof one), (ssize_t)sizeof one);
}

/* What is there already is told without waiting; the bell is quiet once it was heard. */
Test(wait, tells_the_socket_from_the_bell)
{
    struct due__ears e = { .events = POLLIN, .bell = eventfd(0, EFD_NONBLOCK) };
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    e.fd = ends[0];
    cr_expect_eq(due__wait(&e, 0, 0), DUE__WAIT_TIME);
    ring(e.bell);
    cr_expect_eq(due__wait(&e, 0, 0), DUE__WAIT_BELL);
    cr_expect_eq(due__wait(&e, 0, 0), DUE__WAIT_TIME);
    cr_assert_eq(write(ends[1], "x", 1), 1);
    cr_expect_eq(due__wait(&e, 0, 0), DUE__WAIT_READY);
    ring(e.bell);
    cr_expect_eq(due__wait(&e, 0, 0), DUE__WAIT_BOTH);
    cr_expect_eq(due__wait(&e, INT64_MAX, INT64_MAX), DUE__WAIT_READY);
    e.fd = -1;
    ring(e.bell);
    cr_expect_eq(due__wait(&e, 0, INT64_MAX), DUE__WAIT_BELL);
    e.bell = -1;
    int64_t before = due__mono_ns();
    errno = 0;
    cr_expect_eq(due__wait(&e, INT64_MAX, before + 2000000), DUE__WAIT_TIME);
    cr_expect_geq(due__mono_ns(), before + 2000000, "it has spun till then");
    cr_expect_eq(due__wait(&e, 0, before + 4000000), DUE__WAIT_TIME);
    cr_expect_geq(due__mono_ns(), before + 4000000);
    close(ends[0]);
    close(ends[1]);
}

Test(digits, are_a_number_of_at_most_19_and_nothing_else)
{
    static const struct {
        const char *text;
        uint64_t number;
    } right[] = {
        { "0", 0 }, { "9", 9 }, { "10", 10 }, { "9999999999999999999", 9999999999999999999u }
    };
    static const char *const wrong[] = { "", "-1", "1a", "1/", "1:", "10000000000000000000" };
    uint64_t n = 7;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_not(due__reply_digits(wrong[i], strlen(wrong[i]), &n), "%s", wrong[i]);
    cr_expect_eq(n, 7u);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        cr_expect(due__reply_digits(right[i].text, strlen(right[i].text), &n), "%s", right[i].text);
        cr_expect_eq(n, right[i].number);
    }
}

Test(owner, is_shown_without_what_a_terminal_would_obey)
{
    char shown[80];

    due__owner_show("1 h\033[2Jst boot ns 12 34", shown, sizeof shown);
    cr_expect_str_eq(shown, "process 12 on host h?[2Jst");
}
