import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * From putting in a job due at once to a consumer that is blocked in its take.
 *
 * <p>The producer has a core, and everything else of the process the other.
 */
final class WorkHandoff {
    private static final long ALONE = -2; // put in while nobody waits: not counted
    private static final long SETTLE = 200_000; // until the consumer is asleep for certain
    private static final long LOOK = 20_000;
    private static final long PATIENT = 10 * Clock.SECOND;

    /** Shows, on a cache line of its own, how many jobs it has got, and when the last. */
    private static final class Catcher extends Tally {
        private static final int TAKEN = 16;
        private static final int AT = 17;
        private final AtomicLongArray shown = new AtomicLongArray(32);
        private long taken;

        Catcher(int payload) {
            super(payload, false);
        }

        @Override
        public void got(long number, long at, byte[] data) {
            long now = Clock.real();
            if (number != ALONE) {
                early += at > now ? 1 : 0;
                add(number, data);
            }
            shown.setPlain(AT, now);
            shown.setRelease(TAKEN, ++taken);
        }
    }

    private static final class Times {
        final long[] whole;
        final long[] call;
        final long[] alone;

        Times(int jobs) {
            whole = new long[jobs];
            call = new long[jobs];
            alone = new long[jobs];
        }
    }

    private static void awaitTaken(Cell c, Catcher sink, long n) {
        boolean same = c.o.where.equals("same");
        long giveUp = Clock.real() + PATIENT;
        while (sink.shown.getAcquire(Catcher.TAKEN) < n) {
            if (same) {
                Clock.nap(LOOK); // the consumer needs the core
            }
            if (Clock.real() > giveUp) {
                throw Stop.wrong("a job that was put in did not come out");
            }
        }
    }

    private static void handOver(Cell c, Catcher sink, Times times) {
        boolean same = c.o.where.equals("same");
        awaitTaken(c, sink, c.count);
        for (int i = 0; i < c.count; i++) {
            if (same) {
                Clock.nap(SETTLE);
            } else {
                Clock.spinUntil(Clock.real() + SETTLE);
            }
            byte[] data = Stream.payload(i, c.o.payload);
            long from = Clock.real();
            c.rival.put(i, 0, data);
            times.call[i] = Clock.real() - from;
            awaitTaken(c, sink, c.count + i + 1);
            times.whole[i] = sink.shown.getPlain(Catcher.AT) - from;
        }
    }

    private static void alone(Cell c, long[] times) {
        for (int i = 0; i < times.length; i++) {
            byte[] data = Stream.payload(ALONE, c.o.payload);
            long from = Clock.real();
            c.rival.put(ALONE, 0, data);
            times[i] = Clock.real() - from;
        }
    }

    /** Answers what keeps the other core from idling, or null. */
    private static Process place(Cell c) {
        if (c.o.where.equals("same")) {
            Machine.pinProcess(Machine.CORES.get(0));
            return null;
        }
        if (Machine.CORES.size() < 2 || c.o.pin) {
            throw Stop.cannot("this takes two cores");
        }
        Machine.pinProcess(Machine.CORES.get(1));
        return c.o.where.equals("awake") ? Machine.hog(Machine.CORES.get(1)) : null;
    }

    static void handoff(Cell c) {
        c.o.consumers = 1;
        c.prepare(c.o.jobs);
        Process hog = place(c);
        Times times = new Times((int) c.count);
        Catcher sink = new Catcher(c.o.payload);
        c.open(false);
        alone(c, times.alone);
        c.rival.start(new Sink[] {sink});
        c.measureThreads(1, p -> {
            Machine.pinThisThread(Machine.CORES.get(0));
            handOver(c, sink, times);
            c.rival.finish(Clock.real());
        }, c.rival.crew());
        if (hog != null) {
            hog.destroyForcibly().onExit().join(); // so that its time counts as ours
        }
        c.out.sum(sink);
        c.out.check(c.count);
        say(c, times);
    }

    private static void say(Cell c, Times times) {
        Arrays.sort(times.whole);
        Arrays.sort(times.call);
        Arrays.sort(times.alone);
        c.value = Cell.percentile(times.whole, 50);
        c.say("p90_us", Cell.percentile(times.whole, 90));
        c.say("call_p50_us", Cell.percentile(times.call, 50));
        c.say("call_alone_p50_us", Cell.percentile(times.alone, 50));
    }

    private WorkHandoff() {}
}
