/* The file in which a queue shows its figures. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "due/figures.h"
#include "lab/lab.h"
#include "lab/take.h"
#include "metrics/figures_file.h"

static char dir[] = "/tmp/due_figures_XXXXXX";
static char path[64];
static char device[64]; /* a link to one: what is removed by mistake is not the machine's */

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/figures", dir);
    snprintf(device, sizeof device, "%s/device", dir);
    cr_assert_eq(symlink("/dev/null", device), 0);
}

static void remove_dir(void)
{
    unlink(path);
    unlink(device);
    rmdir(dir);
}

TestSuite(figures, .init = make_dir, .fini = remove_dir, .timeout = 60);

static bool is_there(void)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* The set that was written last; it is whole. */
static const struct due_figures *read_set_of(int fd)
{
    static struct due_figures f;
    struct due_figures_head head;
    uint64_t number;

    do {
        cr_assert_eq(pread(fd, &head, sizeof head, 0), (ssize_t)sizeof head);
        cr_assert_eq(
            pread(fd, &f, sizeof f, (off_t)(head.head_bytes + (head.number % 2) * head.set_bytes)),
            (ssize_t)sizeof f);
        cr_assert_eq(pread(fd, &number, sizeof number, offsetof(struct due_figures_head, number)),
                     (ssize_t)sizeof number);
    } while (number != head.number);
    cr_assert_str_eq(head.magic, DUE_FIGURES_MAGIC);
    cr_assert_eq(head.version, (uint32_t)DUE_FIGURES_VERSION);
    cr_assert_eq(head.set_bytes, sizeof f);
    cr_assert_eq(f.number, number);
    return &f;
}

static const struct due_figures *read_set(void)
{
    int fd = open(path, O_RDONLY);

    cr_assert_geq(fd, 0);
    const struct due_figures *f = read_set_of(fd);
    close(fd);
    return f;
}

/* Until the worker proxy has written a set after this one. */
static const struct due_figures *read_next(void)
{
    uint64_t number = read_set()->number;

    /* The next was begun before now, perhaps; the one after it was not. */
    while (read_set()->number < number + 2)
        crew_sleep(DUE_MS(10));
    return read_set();
}

static struct lab open_with_figures(enum due_proxies proxies)
{
    struct lab lab = lab_open(.with.name = "orders", .with.metrics = 1, .with.proxies = proxies);

    cr_assert_eq(due_figures_open(lab.q, path), 0);
    return lab;
}

Test(figures, are_there_as_soon_as_they_are_asked_for)
{
    struct lab lab = lab_open(.with.name = "orders", .with.metrics = 1, .start_ns = 7);

    lab_enqueue(&lab, "tea", .delay_ns = 5);
    cr_assert_eq(due_figures_open(lab.q, path), 0);
    const struct due_figures *f = read_set();
    cr_expect_eq(f->pid, getpid());
    cr_expect_str_eq(f->queue, "orders");
    cr_expect_eq(f->now_ns, 7);
    cr_expect_eq(f->measured, 1u);
    cr_expect_eq(f->closed, 0u);
    cr_expect_eq(f->stats.enqueued, 1u);
    cr_expect_eq(f->stats.waiting, 1u);
    cr_expect_eq(f->oldest_ns, DUE_FOREVER);
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
    cr_expect_eq(cancel, PTHREAD_CANCEL_ENABLE, "as it was before");
    lab_close(&lab);
}

Test(figures, may_be_read_by_all_and_have_a_lock_on_their_first_byte)
{
    mode_t mask = umask(022);
    struct lab lab = open_with_figures(DUE_PROXIES_ADAPTIVE);
    struct stat st;
    int fd = open(path, O_RDWR);

    umask(mask);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_expect_eq(st.st_mode & 07777, 0644u);
    for (int at = 0; at < 2; at++) {
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

        cr_assert_eq(fcntl(fd, F_GETLK, &lock), 0);
        cr_expect_eq(lock.l_type, at == 0 ? F_WRLCK : F_UNLCK, "byte %d", at);
    }
    close(fd);
    lab_close(&lab);
}

Test(figures, may_have_the_first_of_all_descriptors)
{
    struct lab lab = lab_open();

    close(STDIN_FILENO);
    cr_assert_eq(due_figures_open(lab.q, path), 0);
    cr_expect_eq(read_set()->pid, getpid());
    lab_close(&lab);
    cr_expect_not(is_there());
    cr_expect_eq(dup(STDERR_FILENO), STDIN_FILENO, "it was given back");
}

Test(figures, take_turns_and_are_written_as_far_as_they_are_used)
{
    uint64_t number = 0;
    uint64_t sets[6] = { 9, 9, 9, 9, 9, 9 };

    due__figures_put(&number, sets, 3, (const uint64_t[]){ 1, 2, 3 }, 2, 7);
    cr_expect(number == 7 && sets[3] == 1 && sets[4] == 2 && sets[5] == 9);
    due__figures_put(&number, sets, 3, (const uint64_t[]){ 4, 5, 6 }, 2, 8);
    cr_expect(number == 8 && sets[0] == 4 && sets[1] == 5 && sets[2] == 9 && sets[3] == 1);
}

/* 0 says that there is none. */
Test(figures, count_their_sets_from_one_and_leave_out_zero)
{
    static struct due__figures_file file;
    static struct due_figures set;

    cr_assert_eq(due__figures_file_open(&file, path), 0);
    cr_assert(due__figures_file_put(&file, &set));
    cr_expect_eq(read_set()->number, 1u);
    file.head->number = UINT64_MAX - 1;
    cr_assert(due__figures_file_put(&file, &set));
    cr_expect_eq(read_set()->number, UINT64_MAX);
    cr_assert(due__figures_file_put(&file, &set));
    cr_expect_eq(read_set()->number, 2u);
    due__figures_file_close(&file, true);
    cr_expect_not(is_there());
}

Test(figures, are_refused_where_there_is_no_room)
{
    struct lab lab = lab_open();
    struct rlimit before;

    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 1000, before.rlim_max }), 0);
    int rc = due_figures_open(lab.q, path);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    cr_expect_eq(rc, DUE_ENOSPC);
    cr_expect_not(is_there());
    lab_close(&lab);
}

static void follow(enum due_proxies proxies)
{
    struct lab lab = open_with_figures(proxies);
    int other = lab_topic(&lab, "other");
    due_job job;

    lab_enqueue(&lab, "tea", .delay_ns = 5);
    lab_enqueue(&lab, "milk", .delay_ns = 1000, .topic = other);
    lab_turn_to(&lab, 10);
    cr_assert_eq(take_leased(lab.q, &job, DUE_S(1000), 0), 0);
    cr_assert_eq(due_ack(&job), 0);
    lab_turn_to(&lab, 1500);
    const struct due_figures *f = read_next();
    cr_expect_eq(f->stats.enqueued, 2u);
    cr_expect_eq(f->stats.acked, 1u);
    cr_expect_eq(f->stats.waiting, 1u);
    cr_expect_eq(f->stats.ready, 1u, "what is due is ready though nobody asks");
    cr_expect_eq(f->oldest_ns, 1000);
    cr_expect_eq(f->now_ns, 1500);
    cr_expect_eq(f->late.count, 1u);
    cr_expect_eq(f->late.sum_ns, 5u);
    cr_expect_eq(f->held.count, 1u);
    cr_expect_eq(f->topics, 2u);
    cr_expect_eq(f->topics_here, 2u);
    cr_expect_str_eq(f->topic[0].name, "");
    cr_expect_eq(f->topic[0].stats.acked, 1u);
    cr_expect_str_eq(f->topic[1].name, "other");
    cr_expect_eq(f->topic[1].stats.ready, 1u);
    cr_expect_eq(f->topic[1].stats.oldest_ns, 1000);
    lab_close(&lab);
}

Test(figures, follow_what_happens)
{
    follow(DUE_PROXIES_ADAPTIVE);
}

Test(figures, follow_what_happens_where_proxies_do_everything)
{
    follow(DUE_PROXIES_ALWAYS);
}

static void handle(void *ctx, const due_job *job, due_answer *answer)
{
    (void)ctx;
    (void)job;
    *answer = due_answer_ack();
}

Test(figures, have_the_pools_of_workers)
{
    struct lab lab = open_with_figures(DUE_PROXIES_ADAPTIVE);
    due_workers_options options = { DUE_WORKERS_INIT, .name = "cooks" };
    due_workers *pool;

    cr_assert_eq(due_workers_start(&pool, lab.q, NULL, 0, 2, handle, NULL, &options), 0);
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    const struct due_figures *f;
    do
        f = read_next();
    while (f->pools_here == 0 || f->pool[0].stats.handled == 0);
    cr_expect_eq(f->pools_here, 1u);
    cr_expect_str_eq(f->pool[0].name, "cooks");
    cr_expect_eq(f->pool[0].stats.threads, 2u);
    cr_expect_eq(f->pool[0].stats.acked, 1u);
    cr_assert_eq(due_workers_stop(pool, DUE_FOREVER), 0);
    cr_assert_eq(due_workers_free(pool), 0);
    lab_close(&lab);
}

Test(figures, of_more_topics_than_there_is_room_for_are_of_the_first)
{
    struct lab lab = lab_open(.with.metrics = 1);
    char name[16];

    for (int i = 0; i < DUE_FIGURES_TOPICS + 9; i++) {
        snprintf(name, sizeof name, "topic %d", i);
        lab_enqueue(&lab, "tea", .topic = lab_topic(&lab, name),
                    .delay_ns = i == DUE_FIGURES_TOPICS + 5 ? 1 : 2);
    }
    lab_turn_to(&lab, 3);
    cr_assert_eq(due_figures_open(lab.q, path), 0);
    const struct due_figures *f = read_set();
    cr_expect_eq(f->topics, DUE_FIGURES_TOPICS + 10u);
    cr_expect_eq(f->topics_here, (uint32_t)DUE_FIGURES_TOPICS);
    cr_expect_eq(f->oldest_ns, 1, "the oldest is that of all");
    cr_expect_eq(f->topic[1].stats.ready, 1u);
    lab_close(&lab);
}

/* What stands behind the pools of a set is as it was. */
Test(figures, of_more_pools_than_there_is_room_for_are_of_so_many)
{
    struct lab lab = lab_open(.kernel = true);
    due_workers *pool[DUE_FIGURES_POOLS + 2];
    char name[16];

    for (int i = 0; i < DUE_FIGURES_POOLS + 2; i++) {
        due_workers_options options = { DUE_WORKERS_INIT, .name = name };

        snprintf(name, sizeof name, "pool-%d", i);
        cr_assert_eq(due_workers_start(&pool[i], lab.q, NULL, 0, 1, handle, NULL, &options), 0);
    }
    cr_assert_eq(due_figures_open(lab.q, path), 0);
    const struct due_figures *f = read_set();
    cr_expect_eq(f->pools_here, (uint32_t)DUE_FIGURES_POOLS);
    for (int i = 0; i < DUE_FIGURES_POOLS; i++) {
        cr_expect_eq(f->pool[i].stats.threads, 1u, "%d", i);
        for (int k = 0; k < i; k++)
            cr_expect_str_neq(f->pool[i].name, f->pool[k].name);
    }
    for (int i = 0; i < DUE_FIGURES_POOLS + 2; i++) {
        cr_assert_eq(due_workers_stop(pool[i], DUE_FOREVER), 0);
        cr_assert_eq(due_workers_free(pool[i]), 0);
    }
    lab_close(&lab);
}

Test(figures, end_with_a_set_that_says_so_and_the_file_goes_with_the_queue)
{
    for (int i = 0; i < 50; i++) { /* the worker proxy hears of the file and of the end at once */
        struct lab lab = open_with_figures(DUE_PROXIES_ADAPTIVE);

        lab_enqueue(&lab, "tea", .delay_ns = 5);
        cr_assert_eq(due_close(lab.q, DUE_CLOSE_DISCARD, DUE_S(10)), 0);
        const struct due_figures *f = read_set();
        cr_assert_eq(f->closed, 1u);
        cr_assert_eq(f->stats.discarded, 1u);
        lab_close(&lab);
        cr_assert_not(is_there());
    }
}

Test(figures, count_what_is_due_as_ready_though_nobody_takes)
{
    struct lab lab = lab_open(.kernel = true);

    cr_assert_eq(due_figures_open(lab.q, path), 0);
    lab_enqueue(&lab, "tea", .delay_ns = DUE_MS(1));
    int64_t began = crew_now_ns();
    while (read_next()->stats.ready == 0)
        cr_assert_lt(crew_now_ns() - began, DUE_S(8), "the heartbeat comes after 10 s");
    lab_close(&lab);
}

Test(figures, are_of_one_queue_and_one_file)
{
    struct lab lab = open_with_figures(DUE_PROXIES_ADAPTIVE);
    struct lab other = lab_open();

    cr_expect_eq(due_figures_open(lab.q, device), DUE_EEXIST);
    cr_expect_eq(due_figures_open(other.q, path), DUE_EBUSY);
    cr_expect_eq(due_figures_open(lab.q, path), DUE_EEXIST);
    lab_close(&other);
    cr_expect(is_there());
    lab_close(&lab);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");

    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

Test(figures, are_refused_where_they_cannot_be)
{
    struct lab lab = lab_open();
    char name[PATH_MAX + 2];
    char text[16] = "";

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    cr_expect_eq(due_figures_open(lab.q, name), DUE_EINVAL);
    cr_expect_eq(due_figures_open(lab.q, ""), DUE_EINVAL);
    cr_expect_eq(due_figures_open(lab.q, dir), DUE_EINVAL);
    cr_expect_eq(due_figures_open(lab.q, device), DUE_EINVAL);
    cr_expect_eq(unlink(device), 0, "it was removed");
    snprintf(name, sizeof name, "%s/none/figures", dir);
    cr_expect_eq(due_figures_open(lab.q, name), DUE_ENOENT);

    write_file("somebody's, and it is longer than the head of a file of figures would be");
    cr_expect_eq(due_figures_open(lab.q, path), DUE_EINVAL);
    write_file("somebody's");
    cr_expect_eq(due_figures_open(lab.q, path), DUE_EINVAL);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    cr_expect_not_null(fgets(text, sizeof text, file));
    cr_expect_str_eq(text, "somebody's", "what is another's is left alone");
    fclose(file);
    lab_close(&lab);

    lab = lab_open(.with.proxies = DUE_PROXIES_NEVER);
    cr_expect_eq(due_figures_open(lab.q, path), DUE_ENOTSUP);
    lab_close(&lab);
}

/* In a child that dies with the file open. */
static void die_with_figures(void)
{
    pid_t child = fork();

    if (child == 0) {
        due_queue *q;

        if (due_open(&q, &(due_options){ DUE_OPTIONS_INIT, .name = "dead" }, NULL) != 0 ||
            due_figures_open(q, path) != 0)
            _exit(1);
        _exit(0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}

Test(figures, of_a_program_that_has_died_are_written_on)
{
    die_with_figures();
    const struct due_figures *f = read_set();
    uint64_t number = f->number;
    cr_expect_str_eq(f->queue, "dead");
    cr_expect_eq(f->closed, 0u);

    struct lab lab = open_with_figures(DUE_PROXIES_ADAPTIVE);
    f = read_set();
    cr_expect_str_eq(f->queue, "orders");
    cr_expect_gt(f->number, number, "no number comes twice");
    lab_close(&lab);
    cr_expect_not(is_there());
}

Test(figures, stay_the_parents_in_a_child)
{
    struct lab lab = open_with_figures(DUE_PROXIES_ADAPTIVE);
    pid_t child = fork();

    if (child == 0)
        _exit(due_figures_open(lab.q, path) != DUE_EFORK || due_free(lab.q) != 0);
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    cr_expect(is_there());
    cr_expect_eq(read_next()->pid, getpid());
    lab_close(&lab);
}

static atomic_uint logged;

static void ignore_discard(void *ctx, const due_job *job)
{
    (void)ctx;
    (void)job;
}

static void count_lines(void *ctx, enum due_log_level level, const char *text)
{
    (void)ctx;
    if (level == DUE_LOG_WARNING && strstr(text, "shorter") != NULL)
        atomic_fetch_add(&logged, 1);
}

Test(figures, are_given_up_if_somebody_makes_the_file_shorter)
{
    struct lab lab = lab_open(.with.on_log = count_lines, .with.on_discard = ignore_discard);

    atomic_store(&logged, 0);
    cr_assert_eq(due_figures_open(lab.q, path), 0);
    cr_assert_eq(truncate(path, 0), 0);
    while (atomic_load(&logged) == 0)
        crew_sleep(DUE_MS(10));
    lab_enqueue(&lab, "tea", .delay_ns = 0);
    cr_expect_str_eq(lab_dequeue(&lab), "tea");
    lab_close(&lab);
    cr_expect_eq(atomic_load(&logged), 1u);
}

/* Is the file part of the program's memory? */
static bool is_mapped(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    bool mapped = false;
    char line[PATH_MAX];

    cr_assert_not_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        mapped |= strstr(line, path) != NULL;
    fclose(maps);
    return mapped;
}

Test(figures, are_no_part_of_memory_any_more_when_their_queue_is_gone)
{
    struct lab lab = open_with_figures(DUE_PROXIES_ADAPTIVE);
    struct lab other = lab_open();

    cr_expect(is_mapped());
    lab_close(&lab);
    cr_expect_not(is_mapped());
    write_file("somebody's");
    cr_expect_eq(due_figures_open(other.q, path), DUE_EINVAL);
    cr_expect_not(is_mapped(), "it was refused");
    lab_close(&other);
}

Test(figures, leave_a_file_alone_that_has_taken_the_place)
{
    struct lab lab = open_with_figures(DUE_PROXIES_ADAPTIVE);

    cr_assert_eq(unlink(path), 0);
    write_file("somebody's");
    lab_close(&lab);
    cr_expect(is_there());
}

Test(figures, give_back_everything_whichever_allocation_fails)
{
    for (size_t n = 0; n < 3; n++) {
        struct lab lab = lab_open();

        flaky_fail_in(&lab.state->memory, n);
        int rc = due_figures_open(lab.q, path);
        cr_expect(rc == 0 || rc == DUE_ENOMEM);
        cr_expect(n > 0 || rc == DUE_ENOMEM);
        cr_expect_eq(is_there(), rc == 0);
        if (n == 1 && rc == 0 && read_set()->number == 1)
            cr_expect_eq(read_set()->topics_here, 0u, "what there was no memory for");
        lab_close(&lab);
    }
}

/* ---- Two who open it at once ---- */

struct quicker {
    due_queue *q;
    bool opens; /* at the next allocation that is large enough for a set */
    int rc;
};

static void be_quicker(void *ctx, size_t size)
{
    struct quicker *quicker = ctx;

    if (!quicker->opens || size < sizeof(struct due_figures))
        return;
    quicker->opens = false;
    quicker->rc = due_figures_open(quicker->q, path);
}

/* Who was slower leaves nothing behind, neither a file nor memory. */
Test(figures, are_shown_once_by_two_who_open_them_at_once)
{
    char other[80];
    struct stat st;
    struct lab lab = lab_open();
    struct quicker quicker = { .q = lab.q, .opens = true, .rc = -1 };

    snprintf(other, sizeof other, "%s/other", dir);
    lab.state->memory.on_alloc_ctx = &quicker;
    lab.state->memory.on_alloc = be_quicker;
    cr_expect_eq(due_figures_open(lab.q, other), DUE_EEXIST);
    lab.state->memory.on_alloc = NULL;
    cr_expect_eq(quicker.rc, 0, "%s", due_error_name(quicker.rc));
    cr_expect(is_there());
    cr_expect_neq(stat(other, &st), 0, "its file is there still");
    lab_close(&lab);
    unlink(other);
}
