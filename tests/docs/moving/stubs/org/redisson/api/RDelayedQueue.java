package org.redisson.api;

import java.util.concurrent.TimeUnit;

public interface RDelayedQueue<V> extends RQueue<V> {
    void offer(V element, long delay, TimeUnit unit);

    void destroy();
}
