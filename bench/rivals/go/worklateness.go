package main

import "time"

// How late a job is taken that was put in long before.

// watch is a sink that remembers how late jobs were.
type watch struct {
	*counter
	late []int64
}

func (w *watch) got(j job) {
	w.counter.got(j)
	w.late = append(w.late, w.last-j.at)
}

func workLateness(c *cell) {
	if c.spread < 0 {
		c.spread = c.jobs * c.gap
	}
	list := counters(c, true)
	watches := make([]*watch, len(list))
	for i, k := range list {
		watches[i] = &watch{k, make([]int64, 0, c.jobs)}
	}
	c.open(c.jobs, c.jobs, false, false)
	c.base = now() + 50_000_000 + c.jobs*2000
	c.fill(0, 1, c.count, nil)
	c.measure(func() {
		c.q.start(asSinks(watches))
		time.Sleep(time.Duration(c.base + c.spread - now()))
		waitOut(list, uint64(c.count))
	})
	c.finish(list, c.count)
	var late []int64
	for _, w := range watches {
		late = append(late, w.late...)
	}
	sorted(late)
	c.value = percentile(late, 50)
	c.say("p10_us", percentile(late, 10))
	c.say("p90_us", percentile(late, 90))
	c.say("p99_us", percentile(late, 99))
	c.say("p999_us", percentile(late, 99.9))
	c.say("cpu_us_per_job", c.used.cpu*1e6/float64(c.count))
}
