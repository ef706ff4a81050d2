package org.redisson.api;

import java.util.concurrent.BlockingQueue;

public interface RBlockingQueue<V> extends RQueue<V>, BlockingQueue<V> {
}
