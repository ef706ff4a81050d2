import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/** Threads that stay, when they have done their work, until their usage has been looked at. */
final class Crew {
    private final CountDownLatch working;
    private final CountDownLatch released = new CountDownLatch(1);
    private final AtomicLong ended = new AtomicLong(Long.MIN_VALUE);

    Crew(int threads) {
        working = new CountDownLatch(threads);
    }

    /** The body of a thread. */
    Runnable member(Runnable work) {
        return () -> {
            try {
                work.run();
            } catch (Stop stop) {
                System.err.println("bench: " + stop.getMessage());
                Runtime.getRuntime().halt(stop.status);
            }
            ended.accumulateAndGet(Clock.real(), Math::max);
            working.countDown();
            await(released);
        };
    }

    void start(String name, Runnable work) {
        Thread thread = new Thread(member(work), name);
        thread.setDaemon(true);
        thread.start();
    }

    /** When the last had done its work. */
    long join() {
        await(working);
        return ended.get();
    }

    void release() {
        released.countDown();
    }

    /** A pool that is shut down interrupts its threads, also those that have ended. */
    static void await(CountDownLatch latch) {
        while (true) {
            try {
                latch.await();
                return;
            } catch (InterruptedException e) {
                continue;
            }
        }
    }
}
