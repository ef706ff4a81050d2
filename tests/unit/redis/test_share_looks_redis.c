/* test_share_looks_redis.c - the shared face of the Redis store: what only looks has the answer,
 * wherever the connection breaks, and shows nothing that is not there, whatever the server says.
 */
#include "lab/redis/share_store_lab.h"

enum look { DEAD, DEAD_PAGE, PAGE, CENSUS, PEOPLE, HOLDER, FIND, BEAT, LOOKS };

static int count_job(void *ctx, const due_record *r)
{
    (void)r;
    ++*(size_t *)ctx;
    return 0;
}

static int count_topic(void *ctx, const struct due_census_topic *t)
{
    *(size_t *)ctx += (size_t)(t->delayed + t->ready + t->leased);
    return 0;
}

static int count_process(void *ctx, const struct due_process_seen *seen)
{
    if (seen->pid == getpid())
        ++*(size_t *)ctx;
    return 0;
}

static due_id id_at(uint64_t sequence)
{
    return put(sequence, 5).record.id;
}

/* What it answers, and how much it shows. */
static int look(struct sharer *s, enum look what, size_t *n)
{
    const struct due_shared_verbs *v = s->verbs;
    struct due_page dead = { .from_ns = INT64_MIN };
    struct due_page waits = { .topic = "", .from_ns = INT64_MIN };
    struct due_census_all all = { 0 };
    due_id id = { { 0 } };
    int rc;

    *n = 0;
    switch (what) {
    case DEAD:
        return v->dead(s->store, 0, 9, count_job, n, soon(LONG_NS));
    case DEAD_PAGE:
        return v->page(s->store, &dead, 9, count_job, n, soon(LONG_NS));
    case PAGE:
        return v->page(s->store, &waits, 9, count_job, n, soon(LONG_NS));
    case CENSUS:
        rc = v->census(s->store, &all, count_topic, n, soon(LONG_NS));
        *n += 10 * all.jobs + 100 * all.dead;
        return rc;
    case PEOPLE:
        return v->processes(s->store, count_process, n, soon(LONG_NS));
    case HOLDER:
        rc = v->holder(s->store, "k", 1, &id, soon(LONG_NS));
        *n = due_id_equal(id, id_at(3)) ? 1 : 0;
        return rc;
    case FIND:
        return s->store->verbs->find(s->store, id_at(3), count_job, n, soon(LONG_NS));
    default:
        return v->beat(s->store, &(struct due_beat){ 0 }, soon(LONG_NS));
    }
}

/* Three jobs: one is dead, two wait, and the last has a key. */
static struct sharer with_jobs(void)
{
    struct sharer s = joined_by_proxy();
    due_change puts[] = { put(1, 5), put(2, 6), put(3, 7) };
    const size_t shown[LOOKS] = { 1, 1, 2, 132, 1, 1, 1, 0 };
    const int answers[LOOKS] = { [DEAD] = 1 };

    puts[2].record.key = "k";
    puts[2].record.key_len = 1;
    fault_proxy_plan(proxy, NULL, 0);
    cr_assert_eq(exchange(&s, puts, 3, NULL), 0);
    cr_assert_eq(claim(&s, 1), 0);
    cr_assert_eq(s.n_held, 1u);
    due_change bury = of_held(&s, 0, DUE_CHANGE_BURY);
    bury.record.cause = DUE_CAUSE_BURIED;
    bury.record.died_ns = 9000;
    cr_assert_eq(say(&s, bury), 0);
    for (int what = 0; what < LOOKS; what++) {
        size_t n;

        cr_assert_eq(look(&s, (enum look)what, &n), answers[what], "look %d", what);
        cr_assert_eq(n, shown[what], "look %d: %d", what, (int)n);
    }
    return s;
}

/* Its commands, when all goes well. */
static uint64_t commands_of(struct sharer *s, enum look what, int *rc, size_t *n)
{
    fault_proxy_plan(proxy, NULL, 0);
    *rc = look(s, what, n);
    return fault_proxy_commands(proxy);
}

REDIS_PROXY_TEST(share_looks, have_the_answer_wherever_the_connection_breaks)
{
    struct sharer s = with_jobs();

    for (int what = 0; what < LOOKS; what++) {
        size_t shown;
        int answer;
        uint64_t commands = commands_of(&s, (enum look)what, &answer, &shown);

        for (uint64_t i = 1; i <= commands; i++) {
            for (int where = FAULT_BEFORE; where <= FAULT_MID_REPLY; where++) {
                struct fault_cell cell = { .command = i,
                                           .where = (enum fault_where)where,
                                           .what = FAULT_RESET };
                size_t n;

                fault_proxy_plan(proxy, &cell, 1);
                int rc = look(&s, (enum look)what, &n);
                cr_expect_eq(rc, answer, "look %d, command %d, %d: %s", what, (int)i, where,
                             due_error_name(rc));
                cr_expect_eq(n, shown, "look %d, command %d, %d: %d", what, (int)i, where, (int)n);
                cr_expect_eq(fault_proxy_struck(proxy), 1u);
            }
        }
    }
    fault_proxy_plan(proxy, NULL, 0);
    go(&s);
}

/* Somebody else's keys, a server that forbids something, or another thing that speaks like one. */
static const char *const texts[] = { ":7", "+x", "-WRONGTYPE x", "-NOPERM x", "-NOSCRIPT x" };

REDIS_PROXY_TEST(share_looks, fail_where_the_server_says_what_it_should_not)
{
    struct sharer s = with_jobs();

    for (int what = 0; what < LOOKS; what++) {
        size_t shown;
        int answer;
        uint64_t commands = commands_of(&s, (enum look)what, &answer, &shown);

        for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
            for (uint64_t i = 1; i <= commands; i++) {
                struct fault_cell cell = {
                    .command = i, .where = FAULT_SENT, .what = FAULT_REPLACE, .text = texts[t]
                };
                size_t n;

                fault_proxy_plan(proxy, &cell, 1);
                int rc = look(&s, (enum look)what, &n);
                cr_expect(rc < 0 || (rc == answer && n == shown), "look %d, command %d, %s: %d %d",
                          what, (int)i, texts[t], rc, (int)n);
                fault_proxy_plan(proxy, NULL, 0);
                rc = look(&s, (enum look)what, &n);
                cr_expect(rc == answer && n == shown, "look %d, behind command %d, %s: %s %d", what,
                          (int)i, texts[t], due_error_name(rc), (int)n);
            }
        }
    }
    go(&s);
}

/* As one that was started anew has. */
REDIS_PROXY_TEST(share_looks, have_the_answer_from_a_server_that_has_forgotten_the_scripts)
{
    struct sharer s = with_jobs();

    for (int what = 0; what < LOOKS; what++) {
        size_t before;
        size_t n;
        int answer = look(&s, (enum look)what, &before);

        ASK("SCRIPT", "FLUSH");
        int rc = look(&s, (enum look)what, &n);
        cr_expect_eq(rc, answer, "look %d: %s", what, due_error_name(rc));
        cr_expect_eq(n, before, "look %d: %d", what, (int)n);
    }
    go(&s);
}

/* One more process joins while that goes wrong (NULL: nothing does), and again if it is refused.
 * What it answered first, or of how many commands it is. */
static int join_through(const struct fault_cell *cell)
{
    struct sharer s = { .n_held = 0 };
    char url[128];

    snprintf(url, sizeof url, "unix://%s/proxy", server.dir);
    due_store *store = make((due_redis_options){ .answer_ns = DUE_MS(300) }, url);
    fault_proxy_plan(proxy, cell, cell != NULL);
    int rc = join_as(&s, store, LONG_NS);
    if (rc != 0) {
        cr_expect_neq(error.text[0], '\0', "%s, command %d: %s", cell->text, (int)cell->command,
                      due_error_name(rc));
        fault_proxy_plan(proxy, NULL, 0);
        cr_assert_eq(join_as(&s, store, LONG_NS), 0, "%s", error.text);
    }
    uint64_t commands = fault_proxy_commands(proxy);
    fault_proxy_plan(proxy, NULL, 0);
    cr_expect_eq(s.verbs->beat(store, &(struct due_beat){ 0 }, soon(LONG_NS)), 0);
    cr_expect_eq(say(&s, put(1, 5)), 0);
    cr_assert_eq(claim(&s, 1), 0);
    cr_assert_eq(s.n_held, 1u);
    cr_expect_eq(say(&s, of_held(&s, 0, DUE_CHANGE_DROP)), 0);
    go(&s);
    return cell == NULL ? (int)commands : rc;
}

REDIS_PROXY_TEST(share_looks, of_who_joins_end_well_or_with_a_reason)
{
    int commands = join_through(NULL);

    cr_assert_gt(commands, 4);
    for (int i = 1; i <= commands; i++) {
        struct fault_cell cell = { .command = (uint64_t)i, .what = FAULT_RESET };

        for (int where = FAULT_BEFORE; where <= FAULT_MID_REPLY; where++) {
            cell.where = (enum fault_where)where;
            int rc = join_through(&cell);
            cr_expect_eq(rc, 0, "command %d, %d: %s", i, where, due_error_name(rc));
        }
        cell.where = FAULT_SENT;
        cell.what = FAULT_REPLACE;
        for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
            cell.text = texts[t];
            cr_expect_leq(join_through(&cell), 0);
        }
    }
    cr_expect_str_eq(ASK("EXISTS", "due:{q}:w", "due:{q}:j", "due:{q}:q"), ":0\r\n");
}
