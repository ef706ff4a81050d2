// cpp_wrappers.cpp - every wrapper of due.hpp does what its call does, and says what is wrong in
// both forms of an error.
#include "cpp/cpp_lab.hpp"

#include <set>
#include <unordered_set>

static void times()
{
    using half = std::chrono::duration<double, std::nano>;

    EXPECT(due::interval(5ms).ns() == 5000000);
    EXPECT(due::interval(std::chrono::hours::max()).ns() == DUE_FOREVER);
    EXPECT(due::interval(std::chrono::hours::min()).ns() == -DUE_FOREVER);
    EXPECT(due::interval(due::forever).ns() == DUE_FOREVER);
    EXPECT(due::interval(std::chrono::nanoseconds(DUE_FOREVER - 1)).ns() == DUE_FOREVER - 1);
    EXPECT(due::interval(half(1.25)).ns() == 2); // late rather than early
    EXPECT(due::interval(half(-1.0) / 0.0).ns() == -DUE_FOREVER);
    EXPECT(due::interval(half(0.0) / 0.0).ns() == DUE_FOREVER);
    EXPECT(due::interval(due::by_policy).ns() == DUE_DELAY_POLICY);
    static_assert(due::interval(1us).ns() == 1000, "at compile time");
}

static void local_times()
{
    using clock = std::chrono::system_clock;
    const clock::time_point begin{};

    EXPECT(due::cron_next("30 2 * * *", "UTC", begin) == begin + 150min);
    EXPECT(*due::try_cron_next("@hourly", "<+01>-1", begin) == begin + 1h);
    EXPECT(due::try_cron_next("@never", "UTC", begin).code() == DUE_EINVAL);
    EXPECT(thrown([&] { (void)due::cron_next("0 0 30 2 *", "UTC", begin); }) == DUE_EINVAL);
    try {
        (void)due::cron_next("@daily", "Mars/Olympus", begin);
        EXPECT(false);
    } catch (const due::error &e) {
        EXPECT(std::string(e.what()).find("no such time zone") != std::string::npos);
    }
}

static void ids()
{
    lab l;
    const due::id a = l.q.enqueue(due::spec("a")), b = l.q.enqueue(due::spec("b"));

    EXPECT(a != b && a == due::id(a) && (a < b) != (b < a));
    EXPECT(due::id::parse(a.str()) == a && a.str().size() == 32);
    EXPECT(due::id::try_parse("tea").code() == DUE_EINVAL);
    EXPECT(thrown([] { (void)due::id::parse("tea"); }) == DUE_EINVAL);
    EXPECT((std::unordered_set<due::id>{ a, b, a }.size() == 2));
    EXPECT((std::set<due::id>{ a, b, a }.size() == 2));
}

static void results_and_errors()
{
    due::result<int> good = 7, bad = due::failure{ DUE_EAGAIN };
    due::result<void> nothing, refused = due::failure{ DUE_EFORK };

    EXPECT(good && *good == 7 && good.value() == 7 && good.code() == 0 && good.other() == nullptr);
    EXPECT(!bad && bad.code() == DUE_EAGAIN && bad.other() == nullptr);
    EXPECT(std::string(bad.text()) == due_error_text(DUE_EAGAIN));
    EXPECT(thrown([&] { (void)bad.value(); }) == DUE_EAGAIN);
    EXPECT(nothing && thrown([&] { nothing.value(); }) == 0);
    EXPECT(!refused && thrown([&] { refused.value(); }) == DUE_EFORK);
    EXPECT(std::string(refused.text()) == due_error_text(DUE_EFORK));

    const due::error e(DUE_ESTALE, nullptr, "be quick");
    const due::error copy = e;
    EXPECT(std::string(copy.what()).find("DUE_ESTALE: ") == 0 && copy.code() == DUE_ESTALE);
    EXPECT(std::string(copy.hint()) == "be quick" && std::string(copy.name()) == "DUE_ESTALE");
}

// A refusal says which field is wrong, and has changed nothing.
static void says_what_is_wrong()
{
    lab l;

    EXPECT(thrown([&] { l.q.enqueue(due::spec("tea").priority(256)); }) == DUE_EINVAL);
    try {
        l.q.enqueue(due::spec("tea").priority(256));
    } catch (const due::error &e) {
        EXPECT(e.code() == DUE_EINVAL);
        EXPECT(std::string(e.what()).find("priority") != std::string::npos);
    }
    EXPECT(l.q.stats().waiting == 0);

    due::options o;
    o.name = "no spaces here";
    due_error why = due_error();
    EXPECT(due::queue::try_open(std::move(o), &why).code() == DUE_EINVAL && why.text[0] != '\0');
    due::options again;
    again.name = "no spaces here";
    EXPECT(thrown([&] { due::queue q(std::move(again)); }) == DUE_EINVAL);
    EXPECT(thrown([] { due::manual_clock c(-1s); }) == DUE_EINVAL);
}

static void jobs_come_at_their_time()
{
    lab l;
    const auto id = l.q.enqueue(due::spec("tea").after(5s).priority(3).headers("hot"));

    EXPECT(!l.q.dequeue(0s) && l.q.try_dequeue().code() == DUE_EAGAIN);
    EXPECT(l.q.next_deadline() == 6s && l.q.remaining(id) == 5s);
    l.clock.advance(5s - 1ns);
    EXPECT(!l.q.dequeue(0s));
    l.clock.advance(1ns);
    EXPECT(l.q.now() == 6s && l.clock.now() == 6s && l.q.poll() == 1);
    auto job = l.q.dequeue();
    EXPECT(job && job->bytes() == "tea" && job->headers() == "hot" && job->id() == id);
    EXPECT(job->deadline() == 6s && job->lateness() == 0s && job->priority() == 3);
    EXPECT(job->size() == 3 && job->data() == job->bytes().data() && job->topic() == 0);
    EXPECT(!job->reserved() && job->attempts() == 0 && job->failures() == 0);

    l.q.enqueue(due::spec("at").at(7s));
    l.clock.turn_to(7s);
    EXPECT(l.clock.try_turn_to(1s).code() == DUE_EINVAL && !l.clock.try_advance(-1s));
    EXPECT(l.q.dequeue()->bytes() == "at");
}

// A time of a clock of std::chrono belongs to a queue of that clock.
static void clocks_are_told_apart()
{
    const auto steady = std::chrono::steady_clock::now();
    const auto wall = std::chrono::system_clock::now();
    due::queue q;
    due::options o;
    o.clock = DUE_CLOCK_REALTIME;
    due::queue w(std::move(o));
    lab l;

    q.enqueue(due::spec("now").at(steady));
    w.enqueue(due::spec("now").at(wall));
    EXPECT(q.dequeue(10s)->lateness() < 60s && w.dequeue(10s)->lateness() < 60s);
    EXPECT(q.try_enqueue(due::spec("now").at(wall)).code() == DUE_EINVAL);
    EXPECT(w.try_enqueue(due::spec("now").at(steady)).code() == DUE_EINVAL);
    EXPECT(thrown([&] { l.q.enqueue(due::spec("now").at(wall)); }) == DUE_EINVAL);
    EXPECT(thrown([&] { l.q.enqueue(std::vector<due::spec>{ due::spec("now").at(steady) }); }) ==
           DUE_EINVAL);
    const auto id = q.enqueue(due::spec("later").after(1h));
    EXPECT(q.try_amend(id, due::spec().at(wall), DUE_SET_TIME).code() == DUE_EINVAL);
}

static void payloads()
{
    lab l;
    std::string any("a\0b", 3);
    int number = 42;

    l.q.enqueue(due::spec(any));
    l.q.enqueue(due::spec().bytes(any.data(), 1));
    l.q.enqueue(due::spec(""));
    l.q.enqueue(due::spec().pointer(&number));
#if __cplusplus >= 202002L
    const std::byte raw[2] = { std::byte{ 1 }, std::byte{ 2 } };
    l.q.enqueue(due::spec(std::span<const std::byte>(raw)));
#else
    l.q.enqueue(due::spec("\1\2"));
#endif
    any = "gone";
    EXPECT(l.q.dequeue()->bytes() == std::string_view("a\0b", 3));
    EXPECT(l.q.dequeue()->bytes() == "a");
    EXPECT(l.q.dequeue()->bytes().empty());
    EXPECT(l.q.dequeue()->pointer<int>() == &number);
    auto job = l.q.dequeue();
    EXPECT(job->bytes() == "\1\2");
#if __cplusplus >= 202002L
    EXPECT(job->span().size() == 2 && job->span()[1] == std::byte{ 2 });
#endif
}

static void timers()
{
    lab l;
    int what = 1;

    const auto first = l.q.enqueue_after(1s, &what);
    l.q.enqueue_at(3s);
    EXPECT(l.q.try_enqueue_after(-1s).code() == DUE_EINVAL && !l.q.try_enqueue_at(-1s));
    l.clock.advance(1s);
    auto job = l.q.dequeue();
    EXPECT(job->id() == first && job->pointer<int>() == &what);
    l.clock.advance(1s);
    EXPECT(l.q.dequeue()->pointer<void>() == nullptr);
}

static void answers()
{
    due::options o;
    o.lease = 10s;
    lab l(std::move(o));

    l.q.enqueue(due::spec("tea").retry(due::retry_fixed(2s)));
    auto job = *l.q.reserve();
    EXPECT(job.reserved() && job.attempts() == 1);
    job.extend(20s);
    l.clock.advance(15s);
    job.nack(3s);
    EXPECT(!job && !l.q.reserve(0s));
    l.clock.advance(3s);
    job = *l.q.reserve(0s);
    EXPECT(job.failures() == 1);
    job.snooze(1s);
    l.clock.advance(1s);
    job = *l.q.reserve(0s);
    EXPECT(job.attempts() == 2);
    job.nack();
    EXPECT(!l.q.reserve(0s));
    l.clock.advance(2s);
    job = *l.q.reserve(0s);
    l.clock.advance(11s); // past the lease
    EXPECT(thrown([&] { job.ack(); }) == DUE_ESTALE && !job);
    job = *l.q.reserve(0s);
    job.bury("cold");
    EXPECT(l.q.list_dead().size() == 1 && std::string(l.q.list_dead()[0].reason) == "cold");
    EXPECT(l.q.kick_all() == 1);
    job = *l.q.reserve(0s);
    EXPECT(job.try_ack() && l.q.stats().acked == 1);
    EXPECT(job.try_ack().code() == DUE_EINVAL && job.try_nack().code() == DUE_EINVAL);
    EXPECT(job.try_snooze(1s).code() == DUE_EINVAL && job.try_bury().code() == DUE_EINVAL);
    EXPECT(job.try_extend(1s).code() == DUE_EINVAL);
    const auto id = l.q.enqueue(due::spec("tea"));
    l.q.reserve(0s)->bury(std::string("cold"));
    l.q.kick(id);
    EXPECT(l.q.try_kick(id).code() == DUE_ENOENT);
    l.q.reserve(0s)->bury();
    EXPECT(l.q.clear_dead() == 1);
}

static void several_at_once()
{
    lab l;
    const int hot = l.q.topic("hot");
    std::vector<due::spec> specs;

    for (int i = 0; i < 5; i++)
        specs.push_back(due::spec("tea").topic(i < 3 ? hot : 0));
    EXPECT(l.q.enqueue(specs).size() == 5 && l.q.enqueue(std::vector<due::spec>()).empty());
    specs[0].priority(-1);
    EXPECT(thrown([&] { (void)l.q.enqueue(specs); }) == DUE_EINVAL);
    EXPECT(l.q.take(2).size() == 2 && l.q.take(9, 0s, { hot }).size() <= 3);
    while (!l.q.take(9).empty())
        ;
    EXPECT(thrown([&] { (void)l.q.take(0); }) == DUE_EINVAL);

    for (int i = 0; i < 3; i++)
        l.q.enqueue(due::spec("tea").topic(hot));
    auto jobs = l.q.take(9, 0s, { hot }, 5s);
    EXPECT(jobs.size() == 3 && jobs[0].reserved());
    jobs[1].done();
    const auto codes = due::ack(jobs);
    EXPECT(codes == (std::vector<int>{ 0, DUE_EINVAL, 0 }) && !jobs[0] && l.q.stats().acked == 2);
    std::vector<due::job> none;
    EXPECT(due::ack(none).empty());
}

static void jobs_are_named()
{
    lab l;
    const auto id = l.q.enqueue(due::spec("tea").after(5s).key("pot"));

    EXPECT(l.q.census().delayed == 1 && l.q.census(0).delayed == 1 && l.q.census(0).ready == 0);
    EXPECT(thrown([&] { (void)l.q.census(99); }) == DUE_EINVAL);
    const auto processes = l.q.processes();
    EXPECT(processes.size() == 1 && processes[0].self == 1 && processes[0].host[0] != 0);
    EXPECT(l.q.find(id).len == 3 && l.q.read(id) == "tea" && l.q.peek()->deadline_ns == DUE_S(6));
    EXPECT(l.q.list().size() == 1 && l.q.id_of_key("pot") == id);
    l.q.update(id, std::string(5000, 'x'));
    EXPECT(l.q.read(id).size() == 5000);
    l.q.amend(id, due::spec("egg").after(9s), DUE_SET_DATA | DUE_SET_TIME);
    EXPECT(l.q.read(id) == "egg" && l.q.remaining(id) == 9s);
    l.q.reschedule(id, 2s);
    EXPECT(l.q.remaining(id) == 1s);
    l.q.promote(id);
    EXPECT(l.q.dequeue(0s)->bytes() == "egg" && !l.q.peek());

    const auto twice = l.q.try_enqueue(due::spec("a").after(1s).key("k"));
    const auto taken = l.q.try_enqueue(due::spec("b").after(1s).key("k"));
    EXPECT(twice && taken.code() == DUE_EEXIST && taken.other() != nullptr);
    EXPECT(due::result<due::id>(twice).value() == *taken.other());
    EXPECT(l.q.enqueue(due::spec("c").after(2s).key("k", DUE_KEY_REPLACE)) == *taken.other());
    EXPECT(l.q.cancel_key("k").bytes() == "c");
    EXPECT(l.q.try_cancel_key("k").code() == DUE_ENOENT && !l.q.try_id_of_key("k"));
    EXPECT(l.q.try_cancel_key({}).code() == DUE_EINVAL);
    EXPECT(l.q.try_enqueue(due::spec("d").key({})).code() == DUE_EINVAL);

    const auto last = l.q.enqueue(due::spec("d").after(1s));
    EXPECT(l.q.cancel(last).bytes() == "d");
    EXPECT(l.q.stats().lent == 0);
    EXPECT(thrown([&] { (void)l.q.cancel(last); }) == DUE_ENOENT);
    EXPECT(l.q.try_find(last).code() == DUE_ENOENT && l.q.try_remaining(last).code() == DUE_ENOENT);
    EXPECT(l.q.try_reschedule(last, 5s).code() == DUE_ENOENT && !l.q.try_promote(last));
    EXPECT(l.q.try_update(last, "x").code() == DUE_ENOENT);
    EXPECT(thrown([&] { (void)l.q.read(last); }) == DUE_ENOENT);
}

static void what_only_some_jobs_have()
{
    lab l;

    const auto ttl = l.q.enqueue(due::spec("ttl").ttl(1s));
    const auto expires = l.q.enqueue(due::spec("expires").expires(2s));
    l.clock.advance(2s);
    EXPECT(!l.q.reserve(0s) && l.q.list_dead().size() == 2 && !(ttl == expires));
    EXPECT(l.q.clear_dead() == 2);

    l.q.enqueue(due::spec("kept").key("k").keep_key(5s));
    l.q.dequeue(0s);
    EXPECT(l.q.try_enqueue(due::spec("kept").key("k")).code() == DUE_EEXIST);

    l.q.enqueue(due::spec("again").every(1s, DUE_REPEAT_AFTER));
    l.q.reserve(0s)->ack();
    EXPECT(!l.q.reserve(0s));
    l.clock.advance(1s);
    EXPECT(l.q.reserve(0s)); // and is given back
    EXPECT(l.q.clear() == 1);

    l.q.enqueue(due::spec("1").group("g"));
    l.q.enqueue(due::spec("2").group("g"));
    auto one = l.q.reserve(0s);
    EXPECT(one && !l.q.reserve(0s));
    one->ack();
    auto two = l.q.reserve(0s);
    EXPECT(two && two->bytes() == "2");
    two->ack();

    l.q.enqueue(due::spec("e").retry(due::retry_exponential(4s, 4s, 2)));
    l.q.reserve(0s)->nack();
    l.clock.advance(4s);
    l.q.reserve(0s)->nack();
    EXPECT(l.q.list_dead().size() == 1 && l.q.clear_dead() == 1);
    l.q.enqueue(due::spec("l").retry(due::retry_ladder({ 1s, 2s })));
    l.q.reserve(0s)->nack();
    l.clock.advance(1s);
    l.q.reserve(0s)->nack();
    l.clock.advance(1s);
    EXPECT(!l.q.reserve(0s));
    l.clock.advance(1s);
    l.q.reserve(0s)->nack();
    EXPECT(l.q.list_dead().size() == 1);
    due_retry long_one =
        due::retry_ladder({ 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s });
    EXPECT(l.q.try_enqueue(due::spec("l").retry(long_one)).code() == DUE_EINVAL);
}

static void topics()
{
    lab l;
    const int hot = l.q.topic("hot");

    EXPECT(std::string(l.q.topic_name(hot)) == "hot" && l.q.topic_name(77) == nullptr);
    EXPECT(*l.q.try_topic("hot") == hot);
    EXPECT(l.q.try_topic(std::string(256, 'x').c_str()).code() == DUE_EINVAL);
    l.q.enqueue(due::spec("a").topic(hot));
    l.q.enqueue(due::spec("b").topic(hot));
    l.q.pause(hot);
    EXPECT(!l.q.dequeue(0s));
    l.q.resume(hot);
    l.q.limit(hot, 1);
    auto one = l.q.dequeue(0s);
    EXPECT(one && !l.q.dequeue(0s));
    one->done();
    l.q.retry(hot, due::retry_fixed(3s));
    l.q.reserve(0s)->nack();
    EXPECT(l.q.next_deadline() == 4s);
    EXPECT(l.q.try_pause(77).code() == DUE_EINVAL && l.q.try_resume(77).code() == DUE_EINVAL);
    EXPECT(l.q.try_limit(77, 1).code() == DUE_EINVAL);
    EXPECT(l.q.try_retry(77, due::retry_fixed(1s)).code() == DUE_EINVAL);
    l.q.trim();
    l.q.flush();
    EXPECT(l.q.try_flush(0s) && l.q.metrics().find("due_") != std::string::npos && l.q.fd() >= 0);
}

int main()
{
    static const named_test tests[] = {
        { "times", times },
        { "local_times", local_times },
        { "ids", ids },
        { "results_and_errors", results_and_errors },
        { "says_what_is_wrong", says_what_is_wrong },
        { "jobs_come_at_their_time", jobs_come_at_their_time },
        { "clocks_are_told_apart", clocks_are_told_apart },
        { "payloads", payloads },
        { "timers", timers },
        { "answers", answers },
        { "several_at_once", several_at_once },
        { "jobs_are_named", jobs_are_named },
        { "what_only_some_jobs_have", what_only_some_jobs_have },
        { "topics", topics },
        { "", nullptr },
    };
    int count = 0;

    for (const named_test *list : { tests, owner_tests })
        for (; list->run != nullptr; list++, count++) {
            running = list->name;
            list->run();
        }
    std::printf("cpp_wrappers: %d tests, C++ %ld\n", count, __cplusplus);
    if (allocated != 0) {
        std::printf("cpp_wrappers: %ld allocations are still out\n", allocated.load());
        return 1;
    }
    return 0;
}
