package main

import (
	"sync/atomic"
	"time"
)

// Producers put in while consumers take: through, slow, burst.
//
// Consumers end when all is out, which the last producer watches through what each consumer counts
// on a cache line of its own: timers hand out jobs in no strict order, so that no job could tell
// that it is the last.

func (c *cell) produce(p int64) {
	for i := p; i < c.count; i += c.producers {
		at := int64(0)
		if c.spread > 0 {
			at = now() + c.stream.delay(uint64(i))
		}
		c.put(i, at)
	}
}

// pass returns when the producers had finished, in s from their start.
func (c *cell) pass(list []*counter, sinks []sink) float64 {
	var finished atomic.Int64
	var span float64

	c.open(c.jobs, c.jobs, false, false)
	c.q.start(sinks)
	from := realNow()
	c.producing(func(p int64) {
		c.produce(p)
		if finished.Add(1) == c.producers {
			span = float64(realNow()-from) / 1e9
			waitOut(list, uint64(c.count))
		}
	})
	c.value = c.millions(c.count)
	c.finish(list, c.count)
	return span
}

func workThrough(c *cell) {
	list := counters(c, c.spread > 0)
	c.pass(list, asSinks(list))
}

// thinker is otherwise busy after every 1,000 jobs.
type thinker struct {
	*counter
	ns int64
}

func (t thinker) got(j job) {
	t.counter.got(j)
	if t.ns > 0 && t.count%1000 == 0 {
		spinUntil(realNow() + t.ns)
	}
}

func workSlow(c *cell) {
	list := counters(c, c.spread > 0)
	thinkers := make([]thinker, len(list))
	for i, k := range list {
		thinkers[i] = thinker{k, c.think}
	}
	c.wall = c.pass(list, asSinks(thinkers))
	c.value = c.millions(c.count)
}

const bursts = 200

func workBurst(c *cell) {
	each := max(c.jobs/bursts, 1)
	took := make([]int64, bursts)
	list := counters(c, true)

	c.producers = 1
	c.open(each*bursts, each*bursts, false, false)
	c.q.start(asSinks(list))
	c.measure(func() {
		for b := range int64(bursts) {
			time.Sleep(time.Duration(c.idle))
			from := realNow()
			for i := b * each; i < (b+1)*each; i++ {
				c.put(i, 0)
			}
			waitOut(list, uint64((b+1)*each))
			for _, k := range list {
				took[b] = max(took[b], k.last-from)
			}
		}
	})
	c.value = percentile(sorted(took), 50) * 1e3 / float64(each)
	c.finish(list, c.count)
}
