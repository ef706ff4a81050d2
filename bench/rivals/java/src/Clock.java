import java.util.concurrent.locks.LockSupport;

/** The monotonic clock, and a virtual one that one thread turns while no other looks at it. */
final class Clock {
    static final long SECOND = 1_000_000_000;
    static final long HOUR = 3600 * SECOND;
    static final long START = 1000 * SECOND; // what the virtual clock shows at first

    static long shown = START;

    static long real() {
        return System.nanoTime();
    }

    static void spinUntil(long at) {
        while (real() - at < 0) {
            // busy
        }
    }

    static void nap(long ns) {
        long until = real() + ns;
        for (long left = ns; left > 0; left = until - real()) {
            LockSupport.parkNanos(left);
        }
    }

    private Clock() {}
}
