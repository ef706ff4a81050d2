import java.util.concurrent.DelayQueue;

/** java.util.concurrent.DelayQueue. */
final class DelayQueueRival implements Rival {
    static final Subject SUBJECT = new Subject("java-delayqueue", "java.util.concurrent.DelayQueue",
            false, true, DelayQueueRival::new);

    private final DelayQueue<Job> queue = new DelayQueue<>();
    private final boolean virtual;
    private final int consumers;
    private final Crew crew;

    private DelayQueueRival(Subject.Setup setup) {
        virtual = setup.virtual();
        consumers = setup.consumers();
        crew = new Crew(consumers);
    }

    @Override
    public Object put(long number, long at, byte[] data) {
        if (virtual) {
            queue.put(new Job.Virtual(number, at, data));
        } else {
            queue.put(new Job(number, at == 0 ? System.nanoTime() : at, data));
        }
        return null;
    }

    @Override
    public boolean cancel(Object handle) {
        return false;
    }

    @Override
    public Job poll() {
        return queue.poll();
    }

    @Override
    public boolean idle() {
        return queue.poll() == null;
    }

    @Override
    public boolean empty() {
        return queue.isEmpty();
    }

    @Override
    public void start(Sink[] sinks) {
        for (Sink sink : sinks) {
            crew.start("consumer", () -> consume(sink));
        }
    }

    private void consume(Sink sink) {
        try {
            for (Job job = queue.take(); job.number != END; job = queue.take()) {
                sink.got(job.number, job.at, job.data);
            }
        } catch (InterruptedException e) {
            throw Stop.wrong("interrupted");
        }
    }

    @Override
    public void finish(long latest) {
        for (int i = 0; i < consumers; i++) {
            put(END, latest + 1, null);
        }
    }

    @Override
    public Crew crew() {
        return crew;
    }
}
