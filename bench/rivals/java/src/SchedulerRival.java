import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * java.util.concurrent.ScheduledThreadPoolExecutor: its threads are the consumers, and each job is
 * a task. Until there are sinks its threads are kept busy.
 */
final class SchedulerRival implements Rival {
    static final Subject SUBJECT = new Subject("java-scheduler",
            "java.util.concurrent.ScheduledThreadPoolExecutor", true, false, SchedulerRival::new);

    /** A thread of the pool. */
    private static final class Worker extends Thread {
        private Sink sink;

        Worker(Runnable body) {
            super(body, "consumer");
            setDaemon(true);
        }
    }

    private record Task(long number, long at, byte[] data) implements Runnable {
        @Override
        public void run() {
            ((Worker) Thread.currentThread()).sink.got(number, at, data);
        }
    }

    private final ScheduledThreadPoolExecutor pool;
    private final CountDownLatch gate = new CountDownLatch(1);
    private final Worker[] workers;
    private final Crew crew;
    private int hired;

    private SchedulerRival(Subject.Setup setup) {
        workers = new Worker[setup.consumers()];
        crew = new Crew(workers.length);
        pool = new ScheduledThreadPoolExecutor(workers.length, this::hire);
        pool.setRemoveOnCancelPolicy(true);
        for (int i = 0; i < workers.length; i++) {
            pool.execute(() -> Crew.await(gate));
        }
    }

    private Thread hire(Runnable body) {
        Worker worker = new Worker(crew.member(body));
        workers[hired++] = worker;
        return worker;
    }

    @Override
    public Object put(long number, long at, byte[] data) {
        long wait = at == 0 ? 0 : at - System.nanoTime();
        return pool.schedule(new Task(number, at, data), wait, TimeUnit.NANOSECONDS);
    }

    @Override
    public boolean cancel(Object handle) {
        return ((Future<?>) handle).cancel(false);
    }

    @Override
    public Job poll() {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean idle() {
        return pool.getCompletedTaskCount() == 0;
    }

    @Override
    public boolean empty() {
        return pool.getQueue().isEmpty();
    }

    @Override
    public void start(Sink[] sinks) {
        for (int i = 0; i < workers.length; i++) {
            workers[i].sink = sinks[i];
        }
        gate.countDown();
    }

    /** A pool that is shut down still does what is in it. */
    @Override
    public void finish(long latest) {
        pool.shutdown();
    }

    @Override
    public Crew crew() {
        return crew;
    }
}
