import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;

final class Page {
    static Object page() throws InterruptedException {
        // BLOCK
        return next;
    }
}
