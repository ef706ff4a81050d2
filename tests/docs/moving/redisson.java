import java.util.concurrent.TimeUnit;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;

final class Page {
    static String page(RedissonClient redisson) throws InterruptedException {
        // BLOCK
        return order;
    }
}
