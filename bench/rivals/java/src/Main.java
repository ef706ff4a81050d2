import java.util.List;
import java.util.function.Consumer;

/**
 * bench_java runs one cell: a queue in Java does one workload once, and prints one line.
 *
 * <pre>
 * bench_java WORKLOAD --subject NAME [--option VALUE]...
 * bench_java --list | --list-workloads
 * </pre>
 *
 * README.md of the benchmarks says what the options, the line and the exit status mean.
 *
 * <p>Before, the same is done a few times in small, and not counted, so that what is measured is
 * compiled code.
 */
final class Main {
    private static final long MILLION = 1_000_000;
    private static final int WARM_ROUNDS = 3;
    private static final long WARM_NS = 2 * Clock.SECOND; // no further round after this

    /** Jobs and spread are the defaults; warm is how many jobs a round that is not counted has. */
    record Workload(
            String name, String about, String unit, long jobs, long spread, boolean cancels,
            boolean turns, long warm, Consumer<Cell> run) {}

    /** The spread of -1 is reckoned by the workload. */
    private static final List<Workload> WORKLOADS = List.of(
            new Workload("enqueue", "putting in jobs far away", "M/s", MILLION, Clock.HOUR,
                    false, false, 200_000, WorkFar::enqueue),
            new Workload("through", "putting in while others take", "M/s", MILLION, 0,
                    false, false, 200_000, WorkThrough::through),
            new Workload("lateness", "how late a job is taken", "us", 10_000, -1,
                    false, false, 2000, WorkLateness::lateness),
            new Workload("handoff", "from putting in to a blocked consumer", "us", 2000, 0,
                    false, false, 1000, WorkHandoff::handoff),
            new Workload("cancel", "cancelling jobs in random order", "M/s", MILLION, Clock.HOUR,
                    true, false, 200_000, WorkFar::cancel),
            new Workload("timeout", "putting in a job and cancelling the oldest", "M pairs/s",
                    MILLION, Clock.SECOND, true, false, 200_000, WorkHold::timeout),
            new Workload("hold", "taking the head and putting it back later", "ns", MILLION, -1,
                    false, true, 200_000, WorkHold::hold),
            new Workload("memory", "resident memory of a pending job", "bytes", MILLION,
                    Clock.HOUR, false, false, 0, WorkFar::memory),
            new Workload("mixed", "putting in, cancelling some, taking the rest", "ns a job",
                    MILLION, Clock.HOUR, false, true, 200_000, WorkFar::mixed),
            new Workload("burst", "many jobs at once after a pause", "ns a job", 100_000, 0,
                    false, false, 100_000, WorkThrough::burst),
            new Workload("slow", "putting in while the consumers are busy", "M/s", MILLION, 0,
                    false, false, 200_000, WorkThrough::slow));

    private static final List<Subject> SUBJECTS =
            List.of(DelayQueueRival.SUBJECT, SchedulerRival.SUBJECT);

    public static void main(String[] words) {
        try {
            if (words.length == 0) {
                throw Stop.usage("usage: bench_java WORKLOAD --subject NAME [--option VALUE]...");
            }
            switch (words[0]) {
                case "--list" -> list();
                case "--list-workloads" -> WORKLOADS.forEach(
                        w -> System.out.println(w.name + "\t" + w.about + "\t" + w.unit));
                default -> cell(words);
            }
            System.out.flush();
            System.exit(0);
        } catch (Stop stop) {
            System.err.println("bench: " + stop.getMessage());
            System.exit(stop.status);
        }
    }

    private static void list() {
        String version = "java " + Runtime.version();
        for (Subject s : SUBJECTS) {
            System.out.println(s.name() + "\t" + s.about() + ", " + version + "\t" + s.can());
        }
    }

    private static void cell(String[] words) {
        Workload w = WORKLOADS.stream().filter(one -> one.name.equals(words[0])).findFirst()
                .orElseThrow(() -> Stop.usage("no such workload: " + words[0]));
        Options o = Options.parse(words);
        Subject s = SUBJECTS.stream().filter(one -> one.name().equals(o.subject)).findFirst()
                .orElseThrow(() -> Stop.usage("no such subject: " + o.subject));

        o.jobs = o.jobs >= 0 ? o.jobs : w.jobs;
        o.spread = o.spread >= 0 ? o.spread : w.spread;
        qualify(w, o, s);
        if (o.pin) {
            Machine.pinProcess(Machine.CORES.get(0));
        }
        warmUp(w, o, s);
        Cell c = new Cell(o, s);
        w.run.accept(c);
        c.print(w.name, w.unit);
    }

    /** Can this subject do what is asked for? */
    private static void qualify(Workload w, Options o, Subject s) {
        boolean cancels = w.cancels || w.name.equals("mixed") && o.percent > 0;
        if (w.turns && !s.turns()) {
            throw Stop.cannot(s.name() + " cannot be given a virtual clock");
        }
        if (cancels && !s.cancels()) {
            throw Stop.cannot(s.name() + " finds a job to cancel only by looking at all");
        }
        if (o.topics > 1) {
            throw Stop.cannot(s.name() + " has no topics");
        }
        if (o.spin > 0) {
            throw Stop.cannot(s.name() + " cannot take early and spin");
        }
    }

    private static void warmUp(Workload w, Options o, Subject s) {
        long from = System.nanoTime();
        for (int i = 0; w.warm > 0 && i < WARM_ROUNDS && System.nanoTime() - from < WARM_NS; i++) {
            w.run.accept(new Cell(o.warm(Math.min(5 * o.jobs, w.warm)), s));
        }
        System.gc();
    }

    private Main() {}
}
