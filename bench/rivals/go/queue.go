package main

import "sync/atomic"

// job is what comes out.
type job struct {
	number uint64
	at     int64
	data   []byte
}

// handle names a job that was put in; what is behind it is the subject's.
type handle any

// setup is what a queue is opened for.
type setup struct {
	jobs      int64 // most that will be held at a time
	consumers int64
	payload   int64
	lean      bool // memory is measured: reserve nothing
}

// queue is the table of operations that every subject fills in.
type queue interface {
	// put is called by any goroutine.  With at 0 the job is due at once: the subject reads the
	// clock if it needs it.
	put(number uint64, at int64, data []byte) handle

	// cancel is true if nobody will get the job.
	cancel(h handle) bool

	// take waits for the first due job; one goroutine alone, on a virtual clock, where one is due.
	take() job

	// idle is true if no job comes out.
	idle() bool

	// start lets one goroutine for each sink take; stop ends them when all that is due is out.
	start(sinks []sink)
	stop()
}

// sink gets what a consumer takes, in that consumer.
type sink interface {
	got(j job)
}

type subject struct {
	name, about    string
	cancels, turns bool
	open           func(s setup) queue
}

var subjects []subject // each file of one adds it

func (s *subject) can() []string {
	var words []string
	if s.cancels {
		words = append(words, "cancel")
	}
	if s.turns {
		words = append(words, "virtual")
	}
	return append(words, "payload")
}

// counter is a sink that counts.  What others look at stands on cache lines of its own.
type counter struct {
	tally
	payload int64
	dated   bool // look at the clock: never early
	last    int64
	_       [128]byte
	taken   atomic.Uint64 // what tally.count is, stored after last
	_       [128]byte
}

func (k *counter) got(j job) {
	if k.dated {
		k.last = now()
		if j.at > k.last {
			k.early++
		}
	}
	k.add(j, k.payload)
	k.taken.Store(k.count)
}

func counters(c *cell, dated bool) []*counter {
	list := make([]*counter, c.consumers)
	for i := range list {
		list[i] = &counter{payload: c.payload, dated: dated}
	}
	return list
}

// taken is how many jobs are out.
func taken(list []*counter) uint64 {
	sum := uint64(0)
	for _, k := range list {
		sum += k.taken.Load()
	}
	return sum
}
