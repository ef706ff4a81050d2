package main

// As many come as go: hold, timeout.
//
// Where the clock must stand for the next head is told beforehand by a heap of the cell's own: the
// deadlines do not depend on which of several equal jobs is taken, for the job put back is always
// the next number.

// heap of deadlines.
type heap []int64

func (h heap) up(i int) {
	for ; i > 0 && h[i] < h[(i-1)/2]; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (h heap) down() {
	for i, child := 0, 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// foretell reckons the deadlines of the heads, one after another.
func (c *cell) foretell(live, holds int64) []int64 {
	heads := make([]int64, holds)
	waiting := make(heap, 0, live)
	for i := range live {
		waiting = append(waiting, c.at(i))
		waiting.up(int(i))
	}
	for i := range holds {
		heads[i] = waiting[0]
		waiting[0] += c.stream.delay(uint64(live + i))
		waiting.down()
	}
	return heads
}

func (c *cell) holds(heads []int64, from, to int64) {
	dog := newWatchdog()
	defer dog.Stop()
	for i := from; i < to; i++ {
		dog.stroke(i)
		shown = heads[i]
		j := c.q.take()
		if j.at != heads[i] {
			die(wrong, "job %d came, due at %d, instead of that due at %d", j.number, j.at, shown)
		}
		c.out.add(j, c.payload)
		c.put(c.live+i, heads[i]+c.stream.delay(uint64(c.live+i)))
	}
}

func workHold(c *cell) {
	if c.spread < 0 {
		c.spread = meanSpread(c.shape)
	}
	c.open(c.live+2*c.jobs, c.live, true, false)
	c.base = start
	heads := c.foretell(c.live, 2*c.jobs)
	c.fill(0, 1, c.live, nil)
	c.holds(heads, 0, c.jobs)
	c.measure(func() { c.holds(heads, c.jobs, 2*c.jobs) })
	c.value = c.wall * 1e9 / float64(c.jobs)
	if c.rehearsal {
		return
	}
	shown = heads[2*c.jobs-1] + c.spread + second
	c.drain(c.live, false)
	c.q.stop()
	c.check(c.count)
}

// workTimeout keeps the handles of each producer in a ring, the oldest next.
func workTimeout(c *cell) {
	if c.live < c.producers {
		die(usage, "--live must be at least --producers")
	}
	c.open(c.live+c.jobs, c.live+c.producers, true, false)
	c.base = now() + 30*second
	rings := c.handles(c.live)
	for p := range c.producers {
		c.fill(p, c.producers, c.live, rings[p])
	}
	c.producing(func(p int64) {
		ring, oldest := rings[p], 0
		for i := p + int64(len(ring))*c.producers; i < c.count; i += c.producers {
			h := c.put(i, c.at(i))
			c.cancel(ring[oldest], p, i/c.producers-int64(len(ring)))
			ring[oldest] = h
			if oldest++; oldest == len(ring) {
				oldest = 0
			}
		}
	})
	c.value = c.millions(c.jobs)
	for p, ring := range rings {
		for i, h := range ring {
			c.cancel(h, int64(p), int64(i))
		}
	}
	for i := range c.count {
		c.out.cancelled(uint64(i))
	}
	c.provesCancel()
	c.q.stop()
	c.check(c.count)
}
