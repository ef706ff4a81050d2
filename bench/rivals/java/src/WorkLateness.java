import java.util.Arrays;
import java.util.stream.IntStream;

/** How late a job is taken that was put in long before. */
final class WorkLateness {
    private static final long LEAD = 50_000_000; // between putting in and the first
    private static final long LEAD_JOB = 2000; // and for each job

    /** Remembers how late jobs were. */
    private static final class Watch extends Tally {
        private final long[] late;

        Watch(int payload, long jobs) {
            super(payload, true);
            late = new long[(int) jobs];
        }

        @Override
        public void got(long number, long at, byte[] data) {
            super.got(number, at, data);
            late[(int) count - 1] = last - at;
        }
    }

    static void lateness(Cell c) {
        if (c.o.spread < 0) {
            c.o.spread = c.o.jobs * c.o.gap;
        }
        c.prepare(c.o.jobs);
        c.open(false);
        Watch[] watches = IntStream.range(0, c.o.consumers)
                .mapToObj(i -> new Watch(c.o.payload, c.count)).toArray(Watch[]::new);
        c.base = Clock.real() + LEAD + c.count * LEAD_JOB;
        c.fill(0, 1, c.count, null);
        c.measure(() -> {
            c.rival.start(watches);
            c.rival.finish(c.base + c.o.spread + Clock.SECOND / 1000);
            c.rival.crew().join();
        });
        c.rival.crew().release();
        for (Watch watch : watches) {
            c.out.sum(watch);
        }
        c.out.check(c.count);
        say(c, Arrays.stream(watches).flatMapToLong(w -> Arrays.stream(w.late, 0, (int) w.count))
                .sorted().toArray());
    }

    private static void say(Cell c, long[] late) {
        c.value = Cell.percentile(late, 50);
        c.say("p10_us", Cell.percentile(late, 10));
        c.say("p90_us", Cell.percentile(late, 90));
        c.say("p99_us", Cell.percentile(late, 99));
        c.say("p999_us", Cell.percentile(late, 99.9));
        c.say("cpu_us_per_job", c.used.cpu() * 1e6 / late.length);
    }

    private WorkLateness() {}
}
