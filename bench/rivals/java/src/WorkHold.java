/**
 * As many come as go: hold, timeout.
 *
 * <p>Where the clock must stand for the next head is told beforehand by a heap of the cell's own:
 * the deadlines do not depend on which of several equal jobs is taken, for the job put back is
 * always the next number.
 */
final class WorkHold {
    private static void up(long[] heap, int i) {
        long own = heap[i];
        for (; i > 0 && own < heap[(i - 1) / 2]; i = (i - 1) / 2) {
            heap[i] = heap[(i - 1) / 2];
        }
        heap[i] = own;
    }

    private static void replaceHead(long[] heap, long own) {
        int i = 0;
        for (int child = 1; child < heap.length; child = 2 * i + 1) {
            if (child + 1 < heap.length && heap[child + 1] < heap[child]) {
                child++;
            }
            if (own <= heap[child]) {
                break;
            }
            heap[i] = heap[child];
            i = child;
        }
        heap[i] = own;
    }

    /** The deadlines of the heads, one after another. */
    private static long[] foretell(Cell c, int live, int holds) {
        long[] heads = new long[holds];
        long[] heap = new long[live];
        for (int i = 0; i < live; i++) {
            heap[i] = c.at(i);
            up(heap, i);
        }
        for (int i = 0; i < holds; i++) {
            heads[i] = heap[0];
            replaceHead(heap, heads[i] + c.stream.delay(live + i));
        }
        return heads;
    }

    private static void holds(Cell c, long[] heads, int from, int to, long live) {
        for (int i = from; i < to; i++) {
            Clock.shown = heads[i];
            Job job = c.rival.poll();
            if (job == null || job.at != heads[i]) {
                throw Stop.wrong("there came " + (job == null ? "no job" : "job " + job.number)
                        + ", instead of that due at " + heads[i]);
            }
            c.out.add(job.number, job.data);
            c.put(live + i, heads[i] + c.stream.delay(live + i));
        }
    }

    static void hold(Cell c) {
        int live = (int) c.o.live;
        int jobs = (int) c.o.jobs;
        if (c.o.spread < 0) {
            c.o.spread = Stream.meanSpread(c.o.shape);
        }
        c.prepare(live + 2L * jobs);
        c.open(true);
        c.base = Clock.START;
        long[] heads = foretell(c, live, 2 * jobs);
        c.fill(0, 1, live, null);
        holds(c, heads, 0, jobs, live);
        c.measure(() -> holds(c, heads, jobs, 2 * jobs, live));
        c.value = c.wall * 1e9 / jobs;
        Clock.shown = heads[2 * jobs - 1] + c.o.spread + Clock.SECOND;
        c.drain(false);
        c.close();
        c.out.check(c.count);
    }

    /** The handles of a producer are a ring, the oldest next. */
    private static void pairs(Cell c, int producer, Object[] ring) {
        int step = c.o.producers;
        int oldest = 0;
        for (long i = producer + (long) ring.length * step; i < c.count; i += step) {
            Object handle = c.put(i, c.at(i));
            cancel(c, ring[oldest]);
            ring[oldest] = handle;
            oldest = oldest + 1 < ring.length ? oldest + 1 : 0;
        }
    }

    private static void cancel(Cell c, Object handle) {
        if (!c.rival.cancel(handle)) {
            throw Stop.wrong("the oldest job could not be cancelled");
        }
    }

    static void timeout(Cell c) {
        if (c.o.live < c.o.producers) {
            throw Stop.usage("--live must be at least --producers");
        }
        c.prepare(c.o.live + c.o.jobs);
        c.open(true);
        c.base = Clock.real() + 30 * Clock.SECOND;
        Object[][] rings = c.handles(c.o.live);
        for (int p = 0; p < rings.length; p++) {
            c.fill(p, c.o.producers, c.o.live, rings[p]);
        }
        c.measureThreads(rings.length, p -> pairs(c, p, rings[p]), null);
        c.value = c.millions(c.o.jobs);
        for (Object[] ring : rings) {
            for (Object handle : ring) {
                cancel(c, handle);
            }
        }
        for (long i = 0; i < c.count; i++) {
            c.out.out(i);
        }
        c.close();
        c.out.check(c.count);
    }

    private WorkHold() {}
}
