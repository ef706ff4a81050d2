package main

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// From putting in a job due at once to a consumer that is blocked in its take.
//
// The producer has a core, and everything else of the process the other.  That leaves Go free to
// let any thread of its own run the consumer, as it does.

const (
	aloneJob = math.MaxUint64 - 1 // put in while nobody waits: not counted
	settle   = 200 * time.Microsecond
	glance   = 20 * time.Microsecond
)

// catcher is a sink that shows when it got a job.
type catcher struct {
	tally
	payload int64
	_       [128]byte
	ready   atomic.Int64 // so many have been taken, and it is about to take the next
	at      atomic.Int64 // when it got the last
	_       [128]byte
}

func (k *catcher) got(j job) {
	at := now()
	if j.number != aloneJob {
		k.add(j, k.payload)
		if j.at > at {
			k.early++
		}
	}
	k.at.Store(at)
	k.ready.Add(1)
}

// When the process has pinned itself, it may no longer ask.
var coresAtFirst = sync.OnceValue(cores)

// place pins what must be; the result ends what keeps a core awake.
func (c *cell) place() (stop func()) {
	list := coresAtFirst()
	if c.where == "same" {
		pinProcess(list[:1])
		return func() {}
	}
	if len(list) < 2 || c.pin {
		die(cannot, "this takes two cores")
	}
	pinThreads(list[1:2])
	runtime.LockOSThread()
	pinThread(0, list[:1])
	if c.where == "awake" {
		return hog(list[1])
	}
	return func() {}
}

func (c *cell) awaitTaken(k *catcher, n int64) {
	giveUp := realNow() + int64(patient)
	for k.ready.Load() < n {
		if c.where == "same" {
			time.Sleep(glance)
		}
		if realNow() > giveUp {
			die(wrong, "a job that was put in did not come out")
		}
	}
}

func (c *cell) handOver(k *catcher, i int64) (whole, call int64) {
	if c.where == "same" {
		time.Sleep(settle)
	} else {
		spinUntil(realNow() + int64(settle))
	}
	data := payload(uint64(i), c.payload)
	from := now()
	c.q.put(uint64(i), 0, data)
	call = now() - from
	c.awaitTaken(k, c.count+i+1)
	return k.at.Load() - from, call
}

func workHandoff(c *cell) {
	whole, call := make([]int64, c.jobs), make([]int64, c.jobs)
	alone := make([]int64, c.jobs)
	k := &catcher{payload: c.payload}

	c.producers = 1
	stop := c.place()
	c.open(c.jobs, c.jobs, false, false)
	for i := range alone {
		data := payload(aloneJob, c.payload)
		from := now()
		c.q.put(aloneJob, 0, data)
		alone[i] = now() - from
	}
	c.q.start([]sink{k})
	c.awaitTaken(k, c.count)
	c.measure(func() {
		for i := range c.count {
			whole[i], call[i] = c.handOver(k, i)
		}
	})
	stop()
	c.q.stop()
	c.out = k.tally
	c.check(c.count)
	c.value = percentile(sorted(whole), 50)
	c.say("p90_us", percentile(whole, 90))
	c.say("call_p50_us", percentile(sorted(call), 50))
	c.say("call_alone_p50_us", percentile(sorted(alone), 50))
}
