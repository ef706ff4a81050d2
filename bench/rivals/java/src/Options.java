import java.util.List;

/** The options of the command line; times in ns. */
final class Options implements Cloneable {
    private static final List<String> SHAPES = List.of(
            "uniform", "exponential", "clustered", "heavy", "sawtooth", "equal", "decades");
    private static final List<String> PLACES = List.of("asleep", "same", "awake");
    private static final long MOST = 0x7fffffff;

    String subject;
    long jobs = -1;
    int producers = 1;
    int consumers = 1;
    String shape = "uniform";
    long spread = -1;
    int payload;
    long topics = 1;
    long seed = 42;
    boolean pin;
    long live = 100_000;
    long gap = 1_000_000;
    String where = "asleep";
    long percent = 50;
    long think = 1_000_000;
    long spin;
    long idle = 5_000_000; // before each burst

    static Options parse(String[] words) {
        Options o = new Options();
        for (int i = 1; i < words.length; i++) {
            if (words[i].equals("--pin")) {
                o.pin = true;
                continue;
            }
            if (i + 1 == words.length) {
                throw Stop.usage(words[i] + ": no value");
            }
            o.set(words[i], words[++i]);
        }
        if (o.subject == null) {
            throw Stop.usage("which --subject?");
        }
        if (o.payload > 0 && o.payload < 8) {
            throw Stop.usage("--payload: 0, or 8 and more");
        }
        return o;
    }

    private void set(String name, String value) {
        switch (name) {
            case "--subject" -> subject = value;
            case "--jobs" -> jobs = number(name, value, 1, MOST);
            case "--producers" -> producers = (int) number(name, value, 1, 512);
            case "--consumers" -> consumers = (int) number(name, value, 1, 512);
            case "--batch" -> number(name, value, 0, 4096); // neither knows batches: one by one
            case "--shape" -> shape = choice(name, value, SHAPES);
            case "--spread-ns" -> spread = number(name, value, 0, 1000 * Clock.HOUR);
            case "--payload" -> payload = (int) number(name, value, 0, 4096);
            case "--topics" -> topics = number(name, value, 1, 60_000);
            case "--seed" -> seed = number(name, value, 0, Long.MAX_VALUE);
            case "--live" -> live = number(name, value, 1, MOST);
            case "--gap-ns" -> gap = number(name, value, 1, 60 * Clock.SECOND);
            case "--where" -> where = choice(name, value, PLACES);
            case "--percent" -> percent = number(name, value, 0, 100);
            case "--think-ns" -> think = number(name, value, 0, 60 * Clock.SECOND);
            case "--spin-ns" -> spin = number(name, value, 0, Clock.SECOND);
            default -> throw Stop.usage("no such option: " + name);
        }
    }

    private static long number(String name, String value, long least, long most) {
        try {
            long n = Long.parseLong(value);
            if (n >= least && n <= most) {
                return n;
            }
        } catch (NumberFormatException e) {
            // said below
        }
        throw Stop.usage(name + ": a number between " + least + " and " + most + ", not " + value);
    }

    private static String choice(String name, String value, List<String> words) {
        if (!words.contains(value)) {
            throw Stop.usage(name + ": not known: " + value);
        }
        return value;
    }

    /** The same in small, and in haste. */
    Options warm(long fewer) {
        try {
            Options o = (Options) clone();
            o.jobs = fewer;
            o.live = Math.min(live, Math.max(50_000, producers));
            o.gap = Math.min(gap, 20_000);
            o.idle = 100_000;
            return o;
        } catch (CloneNotSupportedException e) {
            throw new AssertionError(e);
        }
    }
}
