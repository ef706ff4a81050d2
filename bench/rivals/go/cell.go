package main

import (
	"sync"
	"time"
)

const far = hour

// cell is what the workloads share.
type cell struct {
	options
	subject *subject
	stream  stream
	q       queue
	count   int64 // jobs of the stream that take part
	base    int64 // a job's deadline is this plus its delay

	// The result.
	value float64
	wall  float64 // s
	used  account
	out   tally
	more  []string
}

// open makes the stream, if that has not been done, and a queue for so many jobs at a time.
func (c *cell) open(count, held int64, virtual, lean bool) {
	c.count = count
	if c.stream.shape == "" {
		c.stream = newStream(&c.options, count)
	}
	stands = virtual && c.subject.turns
	shown = start
	c.q = c.subject.open(setup{jobs: held, consumers: c.consumers, payload: c.payload, lean: lean})
	c.base = now() + far
}

func (c *cell) at(number int64) int64 {
	return c.base + c.stream.delay(uint64(number))
}

func (c *cell) put(number, at int64) handle {
	return c.q.put(uint64(number), at, payload(uint64(number), c.payload))
}

// fill puts in the jobs from, from + step, ... far away.  Handles, if there are any, are in the
// order put in.
func (c *cell) fill(from, step, end int64, handles []handle) {
	n := 0
	for i := from; i < end; i += step {
		h := c.put(i, c.at(i))
		if handles != nil {
			handles[n] = h
			n++
		}
	}
}

// stripe is how many jobs one producer puts in.
func stripe(count, producer, producers int64) int64 {
	if count <= producer {
		return 0
	}
	return (count-producer-1)/producers + 1
}

func (c *cell) handles(count int64) [][]handle {
	all := make([][]handle, c.producers)
	for p := range all {
		all[p] = make([]handle, stripe(count, int64(p), c.producers))
		for i := range all[p] {
			all[p][i] = c // touched
		}
	}
	return all
}

// measure runs work in the calling goroutine; it may be done several times.
func (c *cell) measure(work func()) {
	before, from := usageNow(), realNow()
	work()
	c.wall += float64(realNow()-from) / 1e9
	after := usageNow()
	c.used.cpu += after.cpu - before.cpu
	c.used.voluntary += after.voluntary - before.voluntary
	c.used.involuntary += after.involuntary - before.involuntary
}

// producing runs body in as many goroutines as there are producers, from a common start, and
// measures from there to the end of the last.
func (c *cell) producing(body func(producer int64)) {
	if c.producers == 1 {
		c.measure(func() { body(0) })
		return
	}
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for p := range c.producers {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			ready.Done()
			<-begin
			body(p)
		}()
	}
	ready.Wait()
	c.measure(func() {
		close(begin)
		done.Wait()
	})
}

func (c *cell) millions(n int64) float64 {
	return float64(n) / c.wall / 1e6
}

const (
	look    = 50 * time.Microsecond
	patient = 10 * time.Second
)

// waitOut waits, without being in the way, until so many are out.
func waitOut(list []*counter, count uint64) {
	seen, since := uint64(0), realNow()
	for {
		out := taken(list)
		if out >= count {
			return
		}
		if out != seen {
			seen, since = out, realNow()
		}
		if realNow()-since > int64(patient) {
			die(wrong, "%d jobs of %d came out, and no more", out, count)
		}
		time.Sleep(look)
	}
}

// turnPastAll turns the virtual clock to where everything is due.
func (c *cell) turnPastAll() {
	shown = c.base + c.spread + second
}

// drain takes, on a clock that was turned, so many jobs: in order, none early, and no more.  Dated:
// their deadlines must be those of jobs far away.
func (c *cell) drain(n int64, dated bool) {
	last := int64(0)
	dog := newWatchdog()
	for i := range n {
		dog.stroke(i)
		j := c.q.take()
		switch {
		case j.number >= uint64(c.count):
			die(wrong, "there is no job %d", j.number)
		case dated && j.at != c.at(int64(j.number)):
			die(wrong, "job %d has not the deadline it was given", j.number)
		case j.at < last:
			die(wrong, "job %d came after one with a later deadline", j.number)
		case j.at > shown:
			c.out.early++
		}
		last = j.at
		c.out.add(j, c.payload)
	}
	dog.Stop()
	c.none("too many came")
}

// watchdog ends the process if a job that must be there does not come: a take would wait for ever.
type watchdog struct{ *time.Timer }

func newWatchdog() watchdog {
	return watchdog{time.AfterFunc(patient, func() { die(wrong, "jobs are lost") })}
}

// stroke is called for each job.
func (w watchdog) stroke(i int64) {
	if i%1024 == 0 {
		w.Reset(patient)
	}
}

func (c *cell) none(complaint string) {
	if !c.q.idle() {
		die(wrong, "a job came out: %s", complaint)
	}
}

// finish adds up, and checks.
func (c *cell) finish(list []*counter, count int64) {
	c.q.stop()
	for _, k := range list {
		c.out.sum(k.tally)
	}
	c.check(count)
}

func asSinks[S sink](list []S) []sink {
	sinks := make([]sink, len(list))
	for i, s := range list {
		sinks[i] = s
	}
	return sinks
}
