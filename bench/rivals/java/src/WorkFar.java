import java.util.Arrays;

/**
 * Jobs far away: enqueue, cancel, mixed, memory. Nothing becomes due by itself. A subject on a
 * virtual clock hands all out in the end; of another all are cancelled, which shows too that each
 * was there.
 */
final class WorkFar {
    static void enqueue(Cell c) {
        int producers = c.o.producers;
        c.prepare(c.o.jobs);
        Object[][] all = c.subject.turns() ? new Object[producers][] : c.handles(c.count);
        c.open(true);
        c.measureThreads(producers, p -> c.fill(p, producers, c.count, all[p]), null);
        c.value = c.millions(c.count);
        if (!c.rival.idle()) {
            throw Stop.wrong("a job came before its time");
        }
        if (c.subject.turns()) {
            c.turnPastAll();
            c.drain(true);
        } else {
            for (int p = 0; p < producers; p++) {
                cancelAll(c, p, all[p], c.stream.shuffled(all[p].length));
            }
        }
        c.close();
        c.out.check(c.count);
    }

    /** Cancels, in this order, what a producer has put in. */
    private static void cancelAll(Cell c, int producer, Object[] handles, int[] order) {
        cancelOwn(c, producer, handles, order);
        tally(c, producer, handles.length);
    }

    private static void cancelOwn(Cell c, int producer, Object[] handles, int[] order) {
        for (int i : order) {
            if (!c.rival.cancel(handles[i])) {
                long number = producer + (long) i * c.o.producers;
                throw Stop.wrong("job " + number + " could not be cancelled");
            }
        }
    }

    private static void tally(Cell c, int producer, int jobs) {
        for (long i = 0; i < jobs; i++) {
            c.out.out(producer + i * c.o.producers);
        }
    }

    static void cancel(Cell c) {
        int producers = c.o.producers;
        c.prepare(c.o.jobs);
        Object[][] all = c.handles(c.count);
        int[][] orders = new int[producers][];
        c.open(true);
        for (int p = 0; p < producers; p++) {
            c.fill(p, producers, c.count, all[p]);
            orders[p] = c.stream.shuffled(all[p].length);
        }
        c.measureThreads(producers, p -> cancelOwn(c, p, all[p], orders[p]), null);
        c.value = c.millions(c.count);
        for (int p = 0; p < producers; p++) {
            tally(c, p, all[p].length);
        }
        c.close();
        c.out.check(c.count);
    }

    /** Cancels none: no subject here can cancel and has a virtual clock. */
    static void mixed(Cell c) {
        c.prepare(c.o.jobs);
        c.open(true);
        c.measure(() -> {
            c.fill(0, 1, c.count, null);
            c.turnPastAll();
            c.drain(false);
        });
        c.value = c.wall * 1e9 / c.count;
        c.close();
        c.out.check(c.count);
    }

    /** What jobs hold, without the garbage of making them. */
    static void memory(Cell c) {
        c.o.producers = 1;
        c.prepare(c.o.jobs);
        boolean cancels = c.subject.cancels();
        Object[] handles = cancels ? c.handles(c.count)[0] : null;
        int[] order = cancels ? c.stream.shuffled(handles.length) : null;
        long before = Machine.resident();
        c.measure(() -> {
            c.open(true);
            c.fill(0, 1, c.count, handles);
        });
        long full = Machine.resident();
        if (cancels) {
            cancelAll(c, 0, handles, order);
            Arrays.fill(handles, null);
        } else {
            c.turnPastAll();
            c.drain(true);
        }
        long after = Machine.resident();
        c.value = Math.max(0, full - before) / (double) c.count;
        if (full > before) {
            c.say("given_back_percent", 100.0 * (full - after) / (full - before));
        }
        c.close();
        c.out.check(c.count);
    }

    private WorkFar() {}
}
