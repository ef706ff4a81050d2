import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;

/** Producers put in while consumers take: through, slow, burst. */
final class WorkThrough {
    private static final int BURSTS = 200;
    private static final long BURST_LOOK = 100_000;
    private static final long PATIENT = 10 * Clock.SECOND;
    private static final int THINK_JOBS = 1000;

    /** Busies itself otherwise after every 1,000 jobs. */
    private static final class Thinker extends Tally {
        private final long think;

        Thinker(Options o) {
            super(o.payload, o.spread > 0);
            think = o.think;
        }

        @Override
        public void got(long number, long at, byte[] data) {
            super.got(number, at, data);
            if (think > 0 && count % THINK_JOBS == 0) {
                Clock.spinUntil(Clock.real() + think);
            }
        }
    }

    /** Shows the producer, on a cache line of its own, how many it has got, and when the last. */
    private static final class Shower extends Tally {
        private static final int COUNT = 16;
        private static final int LAST = 17;
        private final AtomicLongArray shown = new AtomicLongArray(32);

        Shower(Options o) {
            super(o.payload, true);
        }

        @Override
        public void got(long number, long at, byte[] data) {
            super.got(number, at, data);
            shown.setPlain(LAST, last);
            shown.setRelease(COUNT, count);
        }
    }

    /** Until when the producer's latest job is due. */
    private static long produce(Cell c, int producer) {
        long latest = 0;
        for (long i = producer; i < c.count; i += c.o.producers) {
            long at = 0;
            if (c.o.spread > 0) {
                at = Clock.real() + c.stream.delay(i);
                latest = Math.max(latest, at);
            }
            c.put(i, at);
        }
        return latest;
    }

    /** When the producers had finished, in s from their start. */
    private static double pass(Cell c, Tally[] sinks) {
        AtomicInteger finished = new AtomicInteger();
        AtomicLong latest = new AtomicLong();
        c.prepare(c.o.jobs);
        c.open(false);
        c.rival.start(sinks);
        double span = c.measureThreads(c.o.producers, p -> {
            latest.accumulateAndGet(produce(c, p), Math::max);
            if (finished.incrementAndGet() == c.o.producers) {
                c.rival.finish(Math.max(latest.get(), Clock.real()));
            }
        }, c.rival.crew());
        c.value = c.millions(c.count);
        finish(c, sinks);
        return span;
    }

    private static void finish(Cell c, Tally[] sinks) {
        for (Tally sink : sinks) {
            c.out.sum(sink);
        }
        c.out.check(c.count);
    }

    static void through(Cell c) {
        pass(c, IntStream.range(0, c.o.consumers)
                .mapToObj(i -> new Tally(c.o.payload, c.o.spread > 0)).toArray(Tally[]::new));
    }

    static void slow(Cell c) {
        c.wall = pass(c, IntStream.range(0, c.o.consumers)
                .mapToObj(i -> new Thinker(c.o)).toArray(Tally[]::new));
        c.value = c.millions(c.count);
    }

    /** Waits, without being in the way, until so many are out. The time of the last. */
    private static long burstOut(Shower[] sinks, long count) {
        long giveUp = Clock.real() + PATIENT;
        long out;
        do {
            Clock.nap(BURST_LOOK);
            out = Arrays.stream(sinks).mapToLong(s -> s.shown.getAcquire(Shower.COUNT)).sum();
            if (Clock.real() > giveUp) {
                throw Stop.wrong(out + " jobs of " + count + " came out, and no more");
            }
        } while (out < count);
        return Arrays.stream(sinks).mapToLong(s -> s.shown.getPlain(Shower.LAST)).max().orElse(0);
    }

    static void burst(Cell c) {
        long each = Math.max(c.o.jobs / BURSTS, 1);
        long[] took = new long[BURSTS];
        Shower[] sinks = IntStream.range(0, c.o.consumers)
                .mapToObj(i -> new Shower(c.o)).toArray(Shower[]::new);
        c.prepare(each * BURSTS);
        c.open(false);
        c.rival.start(sinks);
        c.measureThreads(1, p -> {
            for (int b = 0; b < BURSTS; b++) {
                Clock.nap(c.o.idle);
                long from = Clock.real();
                for (long i = b * each; i < (b + 1) * each; i++) {
                    c.put(i, 0);
                }
                took[b] = burstOut(sinks, (b + 1) * each) - from;
            }
            c.rival.finish(Clock.real());
        }, c.rival.crew());
        Arrays.sort(took);
        c.value = Cell.percentile(took, 50) * 1e3 / each;
        finish(c, sinks);
    }

    private WorkThrough() {}
}
