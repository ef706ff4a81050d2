import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;

/** What the workloads share. */
final class Cell {
    final Options o;
    final Subject subject;
    Stream stream;
    Rival rival;
    long count; // jobs of the stream that take part
    long base; // a job's deadline is this plus its delay

    // The result.
    double value;
    double wall; // s
    Machine.Usage used = Machine.Usage.NONE;
    final Tally out;
    private final List<String> more = new ArrayList<>();

    Cell(Options o, Subject subject) {
        this.o = o;
        this.subject = subject;
        out = new Tally(o.payload, false);
    }

    /** So many jobs of the stream take part. */
    void prepare(long jobs) {
        count = jobs;
        stream = new Stream(o, jobs);
    }

    /** Opens the queue; jobs far away are an hour away from now. */
    void open(boolean virtual) {
        boolean turns = virtual && subject.turns();
        Clock.shown = Clock.START;
        rival = subject.open().apply(new Subject.Setup(o.consumers, turns));
        base = (turns ? Clock.START : Clock.real()) + Clock.HOUR;
    }

    long at(long number) {
        return base + stream.delay(number);
    }

    Object put(long number, long at) {
        return rival.put(number, at, Stream.payload(number, o.payload));
    }

    /** Put in far away: from, from + step, ... Handles, if there are any, are in that order. */
    void fill(long from, long step, long end, Object[] handles) {
        int n = 0;
        for (long i = from; i < end; i += step) {
            Object handle = put(i, at(i));
            if (handles != null) {
                handles[n++] = handle;
            }
        }
    }

    /** Room for the handles of so many jobs, by producer. */
    Object[][] handles(long jobs) {
        Object[][] all = new Object[o.producers][];
        for (int p = 0; p < o.producers; p++) {
            long own = jobs > p ? (jobs - p - 1) / o.producers + 1 : 0;
            all[p] = new Object[(int) own];
        }
        return all;
    }

    /** In a thread of its own. */
    void measure(Runnable work) {
        measureThreads(1, p -> work.run(), null);
    }

    /**
     * A thread for each producer, from a common start; and until the consumers have ended, if there
     * are any. Answers when the producers had ended, in s from their start.
     */
    double measureThreads(int producers, IntConsumer body, Crew consumers) {
        Crew crew = new Crew(producers);
        CountDownLatch ready = new CountDownLatch(producers);
        CountDownLatch begin = new CountDownLatch(1);
        AtomicLong first = new AtomicLong(Long.MAX_VALUE);
        for (int i = 0; i < producers; i++) {
            int p = i;
            crew.start("producer", () -> {
                ready.countDown();
                Crew.await(begin);
                first.accumulateAndGet(Clock.real(), Math::min);
                body.accept(p);
            });
        }
        Crew.await(ready);
        Machine.Usage before = Machine.usageOfOthers();
        begin.countDown();
        long put = crew.join();
        long last = consumers == null ? put : consumers.join();
        used = Machine.usageOfOthers().plus(before, -1);
        wall = (Math.max(put, last) - first.get()) / 1e9;
        crew.release();
        if (consumers != null) {
            consumers.release();
        }
        return (put - first.get()) / 1e9;
    }

    double millions(long n) {
        return n / wall / 1e6;
    }

    void turnPastAll() {
        Clock.shown = base + o.spread + Clock.SECOND;
    }

    /**
     * Take all that is due on a clock that was turned: in order, none early. Dated: deadlines must
     * be those of jobs far away.
     */
    void drain(boolean dated) {
        long last = 0;
        for (Job job = rival.poll(); job != null; job = rival.poll()) {
            if (job.number < 0 || job.number >= count) {
                throw Stop.wrong("there is no job " + job.number);
            }
            if (dated && job.at != at(job.number)) {
                throw Stop.wrong("job " + job.number + " has not the deadline it was given");
            }
            if (job.at < last) {
                throw Stop.wrong("job " + job.number + " came after one with a later deadline");
            }
            last = job.at;
            out.early += job.at > Clock.shown ? 1 : 0;
            out.add(job.number, job.data);
        }
    }

    /** Ends the threads of a queue where nobody has taken; it must be empty. */
    void close() {
        if (!rival.empty() || !rival.idle()) {
            throw Stop.wrong("jobs were left, or came although they were cancelled");
        }
        rival.start(new Sink[o.consumers]);
        rival.finish(0);
        rival.crew().release();
    }

    void say(String name, double value) {
        more.add(String.format(Locale.ROOT, "\"%s\":%.6g", name, value));
    }

    void print(String workload, String unit) {
        System.out.printf(Locale.ROOT, "{\"workload\":\"%s\",\"subject\":\"%s\",\"value\":%.6g,"
                + "\"unit\":\"%s\",\"count\":%d,\"hash\":\"%016x\",", workload, o.subject,
                value, unit, out.count, out.hash);
        System.out.printf(Locale.ROOT, "\"wall_s\":%.6f,\"cpu_s\":%.6f,\"voluntary\":%d,"
                + "\"involuntary\":%d,\"more\":{%s}}%n", wall, used.cpu(), used.voluntary(),
                used.involuntary(), String.join(",", more));
    }

    /** Of sorted times, in us. */
    static double percentile(long[] sorted, double percent) {
        int at = (int) (percent / 100 * sorted.length);
        return sorted[Math.min(at, sorted.length - 1)] / 1e3;
    }
}
