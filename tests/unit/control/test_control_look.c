/* test_control_look.c - what a control socket tells of jobs: lists, page by page, and those that
 * are named.
 */
#include "lab/crew.h"
#include "unit/control/control_desk.h"

static due_id buried(struct desk *d, const char *text)
{
    due_id id = lab_enqueue(desk_lab(d), text, .delay_ns = 0);
    due_job job;

    cr_assert_eq(lab_reserve(desk_lab(d), &job, DUE_S(1)), 0);
    cr_assert_eq(due_bury(&job, "hot"), 0);
    return id;
}

/* All of a list, in pages of @max: how many jobs there were. */
static unsigned pages(struct desk *d, const char *verb, unsigned max, unsigned *asked)
{
    char cursor[32] = "0";
    unsigned n = 0;

    for (*asked = 0; cursor[0] != '\0' && *asked < 20000; ++*asked) {
        char line[128];

        snprintf(line, sizeof line, "{\"verb\":\"%s\",\"cursor\":\"%s\",\"max\":%u}", verb, cursor,
                 max);
        desk_ask(d, line);
        desk_ends(d, "DUE_OK");
        unsigned found = desk_count(d, "{\"id\":");
        cr_expect(found <= max);
        n += found;
        const char *at = strstr(d->answer, "{\"cursor\":\"");
        if (at == NULL || sscanf(at + 11, "%31[0-9a-f]", cursor) != 1)
            cursor[0] = '\0';
    }
    return n;
}

DESK_TEST(control_list, tells_of_what_waits_on_the_queues_clock)
{
    int mail = lab_topic(desk_lab(d), "ma\"il");

    (void)lab_enqueue(desk_lab(d), "tea", .delay_ns = 500, .topic = mail, .priority = 3);
    desk_ask(d, "{\"verb\":\"list\",\"data\":2}");
    desk_says(d, "{\"queue\":\"kitchen\",\"now_ns\":1000,\"wall_ns\":1");
    desk_says(d, "\"state\":\"waiting\",\"topic\":\"ma\\\"il\",\"at_ns\":1500,\"priority\":3,"
                 "\"len\":3,\"data\":\"te\"}\n{\"cursor\":\"");
    desk_ends(d, "DUE_OK");
    desk_ask(d, "{\"verb\":\"list\"}");
    desk_says(d, "\"len\":3}\n");
}

DESK_TEST(control_list, says_that_it_is_at_the_end)
{
    desk_ask(d, "{\"verb\":\"list\"}");
    desk_says_not(d, "cursor");
    desk_ends(d, "DUE_OK");
    desk_ask(d, "{\"verb\":\"dead\"}");
    desk_says_not(d, "cursor");
    desk_ends(d, "DUE_OK");
}

/* Bytes that are no text come too. */
DESK_TEST(control_list, tells_of_any_bytes)
{
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5, .data = "\xff\0", .len = 2 };

    cr_assert_eq(due_enqueue(desk_queue(d), &spec, 0, NULL), 0);
    desk_ask(d, "{\"verb\":\"list\",\"data\":9}");
    desk_says(d, "\"data\":{\"base64\":\"/wA=\"}}");
}

/* It reads no more of a payload than is read without moving the job behind its equals. */
Test(control_list, does_not_move_long_jobs)
{
    struct desk d = desk_open(false);
    static char bytes[5000];
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5, .data = bytes, .len = sizeof bytes };

    memset(bytes, 'a', sizeof bytes);
    cr_assert_eq(due_enqueue(desk_queue(&d), &spec, 0, NULL), 0);
    bytes[0] = 'b';
    cr_assert_eq(due_enqueue(desk_queue(&d), &spec, 0, NULL), 0);
    desk_ask(&d, "{\"verb\":\"list\",\"data\":8388608}");
    cr_expect_eq(desk_count(&d, "\"len\":5000,\"data\":\""), 2u);
    cr_expect(strlen(d.answer) < 10000);
    lab_turn_to(desk_lab(&d), 1005);
    due_job job;
    cr_assert_eq(due_dequeue(desk_queue(&d), &job, 0), 0);
    cr_expect_eq(*(const char *)job.data, 'a', "it stands behind its equal");
    due_job_done(&job);
    desk_close(&d);
}

/* Nor is one moved by who asks for more, in a queue that nothing is changed in. */
Test(control_show, moves_nothing_that_is_only_read)
{
    struct desk d = desk_with(false, (struct lab_options){ .kernel = false });
    static char bytes[5000];
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5, .data = bytes, .len = sizeof bytes };
    due_id id;

    desk_serve(&d, DUE_CONTROL_READ_ONLY, (due_control_options){ .path = NULL });
    memset(bytes, 'a', sizeof bytes);
    cr_assert_eq(due_enqueue(desk_queue(&d), &spec, 0, &id), 0);
    bytes[0] = 'b';
    cr_assert_eq(due_enqueue(desk_queue(&d), &spec, 0, NULL), 0);
    desk_name(&d, "show", id, ",\"data\":8388608");
    desk_says(&d, "\"len\":5000,\"data\":\"aaaa");
    cr_expect(strlen(d.answer) > 4096 && strlen(d.answer) < 4500);
    lab_turn_to(desk_lab(&d), 1005);
    due_job job;
    cr_assert_eq(due_dequeue(desk_queue(&d), &job, 0), 0);
    cr_expect_eq(*(const char *)job.data, 'a', "it stands behind its equal");
    due_job_done(&job);
    desk_close(&d);
}

static void lists_all(bool stored, unsigned jobs, unsigned max)
{
    struct desk d = desk_open(stored);
    unsigned asked;

    for (unsigned i = 0; i < jobs; i++)
        (void)lab_enqueue(desk_lab(&d), "tea", .delay_ns = 5 + i);
    cr_expect_eq(pages(&d, "list", max, &asked), jobs);
    cr_expect(asked >= jobs / max);
    desk_close(&d);
}

Test(control_list, lists_ten_and_ten_thousand_each_once, .timeout = 120)
{
    for (int stored = 0; stored < 2; stored++) {
        lists_all(stored, 10, 1);
        lists_all(stored, 10, 256);
        lists_all(stored, 10000, 256);
        lists_all(stored, 1000, 7);
    }
}

DESK_TEST(control_list, tells_of_the_dead_and_why)
{
    (void)buried(d, "tea");
    (void)buried(d, "egg");
    desk_ask(d, "{\"verb\":\"list\"}");
    desk_says_not(d, "\"id\":");
    desk_ask(d, "{\"verb\":\"dead\",\"data\":60}");
    cr_expect_eq(desk_count(d, "\"state\":\"dead\""), 2u);
    desk_says(d, "\"died_ns\":1000,\"cause\":\"buried\",\"attempts\":1,\"failures\":");
    desk_says(d, "\"reason\":\"hot\",\"data\":\"egg\"}");
    unsigned asked;
    cr_expect_eq(pages(d, "dead", 1, &asked), 2u);
}

/* ---- show ---- */

DESK_TEST(control_show, tells_of_waiting_and_dead_ones_and_says_what_is_not_there)
{
    due_id waits = lab_enqueue(desk_lab(d), "tea", .delay_ns = 500);
    due_id dead, none;

    dead = buried(d, "egg");
    desk_name(d, "show", waits, ",\"data\":60");
    desk_says(d, "\"state\":\"waiting\",\"topic\":\"\",\"at_ns\":1500,");
    desk_says(d, "\"data\":\"tea\"}");
    desk_name(d, "show", dead, ",\"data\":60");
    desk_says(d, "\"state\":\"dead\"");
    desk_says(d, "\"cause\":\"buried\"");
    desk_says(d, "\"data\":\"egg\"}");
    none = waits;
    none.byte[13] ^= 0x55;
    desk_name(d, "show", none, "");
    desk_says(d, "\"result\":\"DUE_ENOENT\"");
    desk_ends(d, "DUE_OK");
}

DESK_TEST(control_show, says_that_somebody_has_a_job)
{
    due_id id = lab_enqueue(desk_lab(d), "tea", .delay_ns = 0);
    due_job job;

    cr_assert_eq(lab_reserve(desk_lab(d), &job, DUE_S(1)), 0);
    desk_name(d, "show", id, "");
    desk_says(d, "\"result\":\"DUE_EBUSY\"");
    cr_expect_eq(due_ack(&job), 0);
}

enum { AGAIN = 100 };

/* It is dead, and on a lease, and dead again, while it is asked for. */
struct restless {
    due_queue *q;
    due_id id;
    atomic_bool over;
};

static int never_rests(void *arg)
{
    struct restless *r = arg;
    due_job job;

    while (!atomic_load(&r->over)) {
        if (due_kick(r->q, r->id) == 0 && due_reserve(r->q, &job, DUE_S(1)) == 0 &&
            due_bury(&job, "hot") != 0)
            return 1;
    }
    return 0;
}

Test(control_show, tells_of_no_other_job_while_one_dies_and_lives, .timeout = 60)
{
    struct desk d = desk_open(false);
    struct restless r = { .q = desk_queue(&d) };
    struct crew_thread other;
    char line[64 + 36 * AGAIN] = "{\"verb\":\"show\",\"ids\":[";
    size_t at = strlen(line);
    char text[DUE_ID_TEXT];
    unsigned told = 0;
    due_job job;

    r.id = lab_enqueue(desk_lab(&d), "tea", .delay_ns = 0);
    cr_assert_eq(lab_reserve(desk_lab(&d), &job, DUE_S(1)), 0);
    cr_assert_eq(due_bury(&job, "hot"), 0);
    crew_go(&other, never_rests, &r);
    for (int i = 0; i < AGAIN; i++) /* the same one each time: while it is looked for it goes */
        at += (size_t)sprintf(line + at, "%s\"%s\"", i == 0 ? "" : ",", due_id_format(r.id, text));
    strcpy(line + at, "]}");
    for (int i = 0; i < 1000 || (told == 0 && i < 100000); i++) { /* it must have had its turn */
        desk_ask(&d, line);
        cr_assert_eq(desk_count(&d, text), (unsigned)AGAIN, "%s", d.answer);
        cr_assert(!desk_heard(&d, "\"cause\":\"\""), "%s", d.answer);
        told += desk_heard(&d, "\"state\"");
    }
    atomic_store(&r.over, true);
    cr_expect_eq(crew_join(&other), 0);
    cr_expect_gt(told, 0u);
    desk_close(&d);
}

DESK_TEST(control_show, finds_by_key)
{
    due_id id;

    cr_assert_eq(lab_put_key(desk_lab(d), "k\xff", DUE_KEY_REFUSE, "tea", &id,
                             (due_spec){ DUE_SPEC_INIT, .delay_ns = 9 }),
                 0);
    desk_ask(d, "{\"verb\":\"show\",\"key\":{\"base64\":\"a/8=\"},\"data\":9}");
    cr_expect(due_id_equal(id, desk_id(d)));
    desk_says(d, "\"data\":\"tea\"");
    desk_ask(d, "{\"verb\":\"show\",\"key\":\"none\"}");
    cr_expect_str_eq(d->answer, "{\"end\":\"DUE_ENOENT\"}\n");
}

/* An answer ends when it is long: the rest is asked for again. */
Test(control_show, ends_a_long_answer)
{
    struct desk d = desk_open(false);
    size_t len = 5 << 20;
    char *bytes = malloc(len);
    due_spec spec = { DUE_SPEC_INIT, .delay_ns = 5, .data = bytes, .len = len };
    char line[256];
    due_id ids[3];
    char text[3][DUE_ID_TEXT];

    memset(bytes, 'a', len);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(due_enqueue(desk_queue(&d), &spec, 0, &ids[i]), 0);
        due_id_format(ids[i], text[i]);
    }
    snprintf(line, sizeof line,
             "{\"verb\":\"show\",\"data\":8388608,\"ids\":[\"%s\",\"%s\",\"%s\"]}", text[0],
             text[1], text[2]);
    desk_ask(&d, line);
    cr_expect_eq(desk_count(&d, "\"state\""), 2u);
    cr_expect(strlen(d.answer) > 2 * len);
    desk_ends(&d, "DUE_ELIMIT");
    free(bytes);
    desk_close(&d);
}

/* ---- Figures ---- */

DESK_TEST(control_figures, tells_of_counts_metrics_and_queues)
{
    char wanted[80];

    (void)lab_enqueue(desk_lab(d), "tea", .delay_ns = 500);
    desk_ask(d, "{\"verb\":\"stats\"}");
    snprintf(wanted, sizeof wanted, "{\"queue\":\"kitchen\",\"pid\":%d,\"store\":\"DUE_OK\",",
             (int)getpid());
    desk_says(d, wanted);
    desk_says(d, ",\"waiting\":1,\"ready\":0,");
    desk_ask(d, "{\"verb\":\"metrics\"}");
    desk_says(d, "{\"metrics\":\"# HELP ");
    desk_ends(d, "DUE_OK");
    desk_ask(d, "{\"verb\":\"queues\"}");
    snprintf(wanted, sizeof wanted,
             "{\"queue\":\"kitchen\",\"pid\":%d,\"changes\":true,\"put\":true}", (int)getpid());
    desk_says(d, wanted);
}
