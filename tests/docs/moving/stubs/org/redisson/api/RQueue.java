package org.redisson.api;

import java.util.Queue;

public interface RQueue<V> extends Queue<V> {
}
