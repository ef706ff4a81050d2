// cpp_owners.cpp - who owns what of due.hpp: jobs, queues, pools and stores that are moved, dropped
// or thrown out.
#include "cpp/cpp_lab.hpp"

#include <fstream>
#include <memory>
#include <set>
#include <thread>

// A job is lent until it goes away, and once only, wherever it was moved.
static void jobs_are_moved()
{
    lab l;

    for (int i = 0; i < 4; i++)
        l.q.enqueue(due::spec("tea"));
    {
        auto a = *l.q.dequeue();
        due::job b = std::move(a);
        EXPECT(!a && b && b.bytes() == "tea" && l.q.stats().lent == 1);
        due::job c = *l.q.dequeue();
        EXPECT(l.q.stats().lent == 2);
        c = std::move(b);
        EXPECT(c && !b && l.q.stats().lent == 1);
        auto &same = c;
        c = std::move(same);
        EXPECT(c && c.bytes() == "tea" && l.q.stats().lent == 1);
        b = *l.q.dequeue();
        b.done();
        EXPECT(!b && l.q.stats().lent == 1);
        a = due::job(c.release());
        EXPECT(a && !c && l.q.stats().lent == 1);
    }
    EXPECT(l.q.stats().lent == 0);
    static_assert(!std::is_copy_constructible_v<due::job> && !std::is_copy_assignable_v<due::job>);
    static_assert(std::is_nothrow_move_constructible_v<due::job>);
    static_assert(!std::is_copy_constructible_v<due::queue>);
    static_assert(std::is_nothrow_move_constructible_v<due::queue>);
    static_assert(std::is_nothrow_move_assignable_v<due::queue>);
}

// Dropped without an answer, by an exception too, it has failed and its policy says when it comes.
static void a_dropped_job_has_failed()
{
    lab l;

    l.q.enqueue(due::spec("tea").retry(due::retry_fixed(2s, 3)));
    try {
        auto job = l.q.reserve();
        throw std::runtime_error("out of milk");
    } catch (const std::runtime_error &) {
    }
    EXPECT(l.q.stats().nacked == 1 && l.q.stats().lent == 0 && !l.q.reserve(0s));
    l.clock.advance(2s);
    auto job = l.q.reserve(0s);
    EXPECT(job && job->failures() == 1);
    job->done(); // without an answer: until the lease ends
    EXPECT(l.q.stats().nacked == 1 && l.q.stats().leased == 1);
}

static void hooks()
{
    std::atomic<int> events{ 0 }, threads{ 0 }, logged{ 0 };
    std::set<std::string> discarded;
    {
        due::options o;
        o.on_event = [&](const due_event &) { events++; };
        o.on_thread_start = [&](const char *) { threads++; };
        o.on_log = [&](due_log_level, const char *) { logged++; };
        o.on_discard = [&](const due::job_view &job) { discarded.emplace(job.bytes()); };
        lab l(std::move(o));
        due::queue moved = std::move(l.q);
        moved.enqueue(due::spec("cleared").after(1s));
        EXPECT(moved.clear() == 1 && discarded.count("cleared") == 1);
        moved.enqueue(due::spec("left").after(1s));
        l.q = std::move(moved);
    }
    EXPECT(discarded.count("left") == 1 && events > 0 && threads > 0);
}

// A queue that goes away gives everything back; one with a job still lent stays for that job.
static void queues_go_away()
{
    const long before = allocated;
    {
        lab l;
        for (int i = 0; i < 100; i++)
            l.q.enqueue(due::spec(std::string(100, 'x')).after(1s).headers("h"));
        due::queue other;
        other = std::move(l.q);
        EXPECT(other.stats().waiting == 100);
    }
    EXPECT(allocated == before);

    static due::manual_clock clock(1s);
    static int acked;
    static due_queue *stays; // so that it is no leak
    due::job kept;
    {
        due::options o;
        o.on_event = [](const due_event &event) { acked += event.kind == DUE_EVENT_ACKED; };
        due::queue q(lab::with(std::move(o), clock));
        stays = q.get();
        q.enqueue(due::spec(std::string(1000, 'x')));
        kept = *q.reserve();
    }
    EXPECT(kept.bytes() == std::string(1000, 'x'));
    kept.ack(); // its hooks are there still
    EXPECT(acked == 1);
    EXPECT(due_now(stays) == DUE_S(1));
    allocated = before;
}

static void closing()
{
    lab l;

    l.q.enqueue(due::spec("tea").after(1s));
    EXPECT(l.q.try_close(DUE_CLOSE_DRAIN, 0s).code() == DUE_ETIMEDOUT);
    EXPECT(l.q.try_enqueue(due::spec("late")).code() == DUE_ECLOSED);
    l.q.close(DUE_CLOSE_DISCARD);
    EXPECT(!l.q.dequeue() && !l.q.reserve() && l.q.try_reserve().code() == DUE_ECLOSED);
    EXPECT(thrown([&] { (void)l.q.dequeue(1s); }) == DUE_ECLOSED);
    EXPECT(thrown([&] { (void)l.q.take(1); }) == DUE_ECLOSED);
    EXPECT(thrown([&] { (void)l.q.topic("new"); }) == DUE_ECLOSED);
}

// A handler may answer, say nothing, or throw; a pool that goes away has ended.
static void pools()
{
    due::queue q;
    const int other = q.topic("other");
    std::atomic<int> calls{ 0 }, thrown_out{ 0 };
    auto body = std::make_shared<int>(0);
    due::workers_options options, others;
    options.topics = { 0 };
    options.name = "kitchen";
    options.lease = 5s;
    options.on_exception = [&](const due::job_view &job, std::exception_ptr) {
        thrown_out += job.bytes() == "throw";
        return due::answer_bury("thrown");
    };
    others.topics = { other };

    {
        due::workers w(
            q, 2,
            [&calls, body](const due::job_view &job) {
                calls++;
                if (job.bytes() == "throw")
                    throw std::runtime_error("no milk");
                if (job.bytes() == "bury")
                    return due::answer_bury("cold");
                if (job.bytes() == "snooze" && calls < 9)
                    return due::answer_snooze(1ms);
                return job.bytes() == "nack" && job.failures() == 0 ? due::answer_nack(0s)
                                                                    : due::answer_ack();
            },
            options);
        auto handle = [&calls](const due::job_view &job) {
            calls++;
            if (job.failures() == 0)
                throw 7; // and then nothing, which is an ack
        };
        auto started = due::workers::try_start(q, 1, handle, others);
        due::workers plain = std::move(started).value();
        due::workers moved = std::move(plain);

        for (const char *what : { "ack", "nack", "throw", "bury", "snooze" })
            q.enqueue(due::spec(what));
        q.enqueue(due::spec("plain").topic(other));
        EXPECT(w.stats().threads == 2 && moved.get() != nullptr && plain.get() == nullptr);
        q.close(DUE_CLOSE_DRAIN, 60s);
        EXPECT(q.stats().acked == 4 && q.stats().buried == 2 && thrown_out == 1);
        EXPECT(w.stats().retried >= 2 && moved.stats().retried == 1);
        w.stop();
        EXPECT(w.try_stop(0s) && body.use_count() == 2);
    }
    EXPECT(body.use_count() == 1);
    {
        due::queue running_on;
        due::workers w(running_on, 1, [body](const due::job_view &) {});
        running_on.enqueue(due::spec("tea"));
    }
    EXPECT(body.use_count() == 1); // also if nobody has stopped it
    EXPECT(due::workers::try_start(q, 1, [](const due::job_view &) {}).code() == DUE_ECLOSED);
    EXPECT(thrown([&] { due::workers w(q, 0, [](const due::job_view &) {}); }) == DUE_EINVAL);
}

// ---- The file of figures ------------------------------------------------------------------------

static std::string figures_path()
{
    return "cpp_figures_" + std::to_string(getpid());
}

// A file of figures as anybody may make one.
static void figures_put(const due_figures_head &head, const due_figures &set, std::size_t size)
{
    std::string bytes(reinterpret_cast<const char *>(&head), sizeof head);

    for (int i = 0; i < 2; i++)
        bytes.append(reinterpret_cast<const char *>(&set), sizeof set);
    std::ofstream(figures_path(), std::ios::binary) << bytes.substr(0, size);
}

// What a queue shows can be read as long as it likes; a file is open while its object is there.
static void figures_are_shown()
{
    auto is_open = [](int fd) { return fcntl(fd, F_GETFD) != -1; };
    const std::string path = figures_path();
    std::pair<int, int> opened;
    due::options o;
    o.name = "orders";
    o.metrics = true;
    auto q = std::make_unique<due::queue>(std::move(o));
    due::workers_options named;
    named.name = "kitchen";
    auto handle = [](const due::job_view &) {};
    auto w = std::make_unique<due::workers>(*q, 1, handle, named);

    q->topic("mail");
    q->show_figures(path);
    for (int i = 0; i < 3; i++)
        q->enqueue(due::spec("tea").after(1h));
    due::figures f(path);
    auto set = f.read();
    while (set->stats.enqueued != 3)
        set = f.read();
    EXPECT(set->queue == std::string("orders") && set->stats.waiting == 3 && set->closed == 0);
    EXPECT(set->topics_here == 2 && set->topic[1].name == std::string("mail"));
    EXPECT(set->pools_here == 1 && set->pool[0].name == std::string("kitchen"));
    EXPECT(f.alive() && set->pid == getpid() && set->late.count == 0 && set->measured == 1);
    EXPECT(q->try_show_figures(path.c_str()).code() == DUE_EEXIST);
    EXPECT(thrown([] { due::queue().show_figures("no/such/file"); }) == DUE_ENOENT);
    {
        due::figures a(path), b = std::move(a);
        a = due::figures(path);
        EXPECT(a.alive() && b.alive() && a.fd() != b.fd());
        a = std::move(b);
        const int first = a.fd(), second = b.fd();
        EXPECT(is_open(first) && (second < 0 || is_open(second)));
        opened = { first, second };
    }
    EXPECT(!is_open(opened.first) && !is_open(opened.second));
    w = nullptr;
    q = nullptr;
    set = f.read();
    EXPECT(!f.alive() && set->closed == 1 && set->stats.waiting == 0);
    EXPECT(due::figures::try_open(path.c_str()).code() == DUE_ENOENT);
    EXPECT(thrown([&] { due::figures gone(path); }) == DUE_ENOENT);
    static_assert(!std::is_copy_constructible_v<due::figures>);
    static_assert(std::is_nothrow_move_constructible_v<due::figures>);
}

// Whatever is in a file, it is an error, or has bounds.
static void figures_are_not_believed()
{
    const std::string path = figures_path();
    const std::size_t whole = sizeof(due_figures_head) + 2 * sizeof(due_figures);
    due_figures_head head = due_figures_head();
    auto set = std::make_unique<due_figures>();
    auto opened = [&] { return due::figures::try_open(path.c_str()).code(); };
    auto read = [&] { return due::figures(path).try_read().code(); };

    std::memset(set.get(), 0xff, sizeof *set);
    std::memcpy(head.magic, DUE_FIGURES_MAGIC, sizeof head.magic);
    head.version = DUE_FIGURES_VERSION;
    head.head_bytes = sizeof head;
    head.set_bytes = sizeof *set;
    head.number = 7;
    figures_put(head, *set, whole);
    EXPECT(opened() == 0 && read() == DUE_EINVAL);
    set->number = head.number;
    set->topics = set->topics_here = DUE_FIGURES_TOPICS;
    set->pools_here = DUE_FIGURES_POOLS;
    figures_put(head, *set, whole);
    const auto got = due::figures(path).read();
    EXPECT(std::strlen(got->queue) == 71 && std::strlen(got->topic[127].name) == 255);
    EXPECT(std::strlen(got->pool[15].name) == 71);
    EXPECT(got->late.count == 0 - std::uint64_t(DUE_HISTOGRAM_BUCKETS));
    EXPECT(!due::figures(path).alive());
    figures_put(head, *set, whole - 1);
    EXPECT(read() == DUE_EINVAL);
    set->topics_here++;
    set->topics++;
    figures_put(head, *set, whole);
    EXPECT(read() == DUE_EINVAL);
    head.number = 0;
    figures_put(head, *set, whole);
    EXPECT(read() == DUE_EAGAIN);
    head.version++;
    figures_put(head, *set, whole);
    EXPECT(opened() == DUE_ENOTSUP);
    head.magic[0] = 'D';
    figures_put(head, *set, whole);
    EXPECT(opened() == DUE_EINVAL && thrown([&] { due::figures f(path); }) == DUE_EINVAL);
    figures_put(head, *set, 5);
    EXPECT(opened() == DUE_EINVAL);
    std::remove(path.c_str());
}

#ifdef DUE_HAVE_SQLITE
static void stored()
{
    const std::string path = DUE_TEST_FILE;
    std::atomic<bool> restored{ false };
    due::id id;

    for (const char *end : { "", "-wal", "-shm", "-owner" })
        std::remove((path + end).c_str());
    {
        due::options o;
        o.store = due::sqlite_store(path);
        due::queue q(std::move(o));
        id = q.enqueue(due::spec("tea").at(std::chrono::system_clock::now()));
        EXPECT(q.try_enqueue(due::spec().pointer(&id)).code() == DUE_EINVAL);
    }
    {
        due::options o;
        o.store = due::sqlite_store(path);
        o.on_restore = [&](std::uint64_t, bool finished) { restored = finished; };
        due::queue q(std::move(o));
        auto job = q.reserve(60s);
        EXPECT(job && job->id() == id && job->bytes() == "tea");
        job->ack();
        due::options second;
        second.store = due::sqlite_store(path);
        second.open_timeout = 1ms;
        EXPECT(due::queue::try_open(std::move(second)).code() == DUE_EBUSY);
        q.flush();
        while (!restored) // it is told by the thread that reads
            std::this_thread::yield();
    }
    due::store unused = due::sqlite_store(path), moved = std::move(unused);
    EXPECT(moved.get() != nullptr && unused.get() == nullptr);
    EXPECT(thrown([] { (void)due::sqlite_store(""); }) != 0);
}
#endif

const named_test owner_tests[] = {
    { "jobs_are_moved", jobs_are_moved },
    { "a_dropped_job_has_failed", a_dropped_job_has_failed },
    { "hooks", hooks },
    { "queues_go_away", queues_go_away },
    { "closing", closing },
    { "pools", pools },
    { "figures_are_shown", figures_are_shown },
    { "figures_are_not_believed", figures_are_not_believed },
#ifdef DUE_HAVE_SQLITE
    { "stored", stored },
#endif
    { "", nullptr },
};
