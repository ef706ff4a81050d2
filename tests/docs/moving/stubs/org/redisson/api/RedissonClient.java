package org.redisson.api;

public interface RedissonClient {
    <V> RBlockingQueue<V> getBlockingQueue(String name);

    <V> RDelayedQueue<V> getDelayedQueue(RQueue<V> destination);
}
