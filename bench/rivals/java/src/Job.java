import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;

/** An element of a DelayQueue. */
class Job implements Delayed {
    final long number;
    final long at;
    final byte[] data;

    Job(long number, long at, byte[] data) {
        this.number = number;
        this.at = at;
        this.data = data;
    }

    /** On a clock that is turned. */
    static final class Virtual extends Job {
        Virtual(long number, long at, byte[] data) {
            super(number, at, data);
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(at - Clock.shown, TimeUnit.NANOSECONDS);
        }
    }

    @Override
    public long getDelay(TimeUnit unit) {
        return unit.convert(at - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    @Override
    public int compareTo(Delayed other) {
        return Long.compare(at, ((Job) other).at);
    }
}
