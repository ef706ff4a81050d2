package main

import (
	"runtime/debug"
	"time"
)

// Jobs far away: enqueue, cancel, mixed, memory.  Nothing becomes due by itself.  A subject on a
// virtual clock hands all out in the end; of another all are cancelled, which shows too that each
// was there.

func workEnqueue(c *cell) {
	c.open(c.jobs, c.jobs, true, false)
	all := make([][]handle, c.producers)
	if !c.subject.turns {
		all = c.handles(c.count)
	}
	c.producing(func(p int64) { c.fill(p, c.producers, c.count, all[p]) })
	c.value = c.millions(c.count)
	c.none("before its time")
	if !c.subject.turns {
		c.cancelEvery(all)
		c.provesCancel()
	} else if !c.rehearsal {
		c.turnPastAll()
		c.drain(c.count, true)
	}
	c.q.stop()
	if !c.rehearsal {
		c.check(c.count)
	}
}

// cancelEvery cancels all jobs in the order put in.
func (c *cell) cancelEvery(all [][]handle) {
	for p, handles := range all {
		for i, h := range handles {
			c.cancel(h, int64(p), int64(i))
		}
		c.tallyCancelled(int64(p), int64(len(handles)))
	}
}

// cancel cancels what a producer put in as its nth.
func (c *cell) cancel(h handle, producer, nth int64) {
	if !c.q.cancel(h) {
		die(wrong, "job %d could not be cancelled", producer+nth*c.producers)
	}
}

func (c *cell) tallyCancelled(producer, n int64) {
	for i := range n {
		c.out.cancelled(uint64(producer + i*c.producers))
	}
}

// provesCancel puts in jobs that are due soon, cancels them, and waits: an hour is too long to wait
// for those that were measured.
func (c *cell) provesCancel() {
	const few = 1000
	const soon = 300 * time.Millisecond // a machine may hold a process up for tens of them
	handles := make([]handle, few)
	for i := range handles {
		handles[i] = c.put(int64(i), now()+int64(soon))
	}
	for _, i := range c.stream.shuffled(few) {
		c.cancel(handles[i], 0, int64(i))
	}
	time.Sleep(soon + 10*time.Millisecond)
	c.none("it was cancelled")
}

func workCancel(c *cell) {
	c.open(c.jobs, c.jobs, true, false)
	all := c.handles(c.count)
	orders := make([][]uint32, c.producers)
	for p := range c.producers {
		c.fill(p, c.producers, c.count, all[p])
		orders[p] = c.stream.shuffled(len(all[p]))
		all[p] = inOrder(all[p], orders[p])
	}
	c.producing(func(p int64) {
		for i, h := range all[p] {
			c.cancel(h, p, int64(orders[p][i]))
		}
	})
	c.value = c.millions(c.count)
	for p := range c.producers {
		c.tallyCancelled(p, int64(len(all[p])))
	}
	c.provesCancel()
	c.q.stop()
	c.check(c.count)
}

func inOrder(handles []handle, order []uint32) []handle {
	list := make([]handle, len(handles))
	for i, k := range order {
		list[i] = handles[k]
	}
	return list
}

// workMixed cancels none: no subject here can cancel and has a virtual clock.
func workMixed(c *cell) {
	c.open(c.jobs, c.jobs, true, false)
	c.measure(func() {
		c.fill(0, 1, c.count, nil)
		if !c.rehearsal {
			c.turnPastAll()
			c.drain(c.count, false)
		}
	})
	c.value = c.wall * 1e9 / float64(c.count)
	c.q.stop()
	if !c.rehearsal {
		c.check(c.count)
	}
}

// workMemory looks at what is resident after a collection, which gives back what is free: what the
// jobs hold, without the garbage of making them.
func workMemory(c *cell) {
	c.producers = 1
	var handles []handle
	var order []uint32
	if c.subject.cancels {
		handles = c.handles(c.jobs)[0]
		order = make([]uint32, c.jobs)
	}
	c.stream = newStream(&c.options, c.jobs)
	before := collected()
	c.measure(func() {
		c.open(c.jobs, c.jobs, true, true)
		c.fill(0, 1, c.count, handles)
	})
	full := collected()
	if c.subject.cancels {
		copy(order, c.stream.shuffled(len(handles)))
		for _, i := range order {
			c.cancel(handles[i], 0, int64(i))
			handles[i] = nil
		}
		c.tallyCancelled(0, c.count)
		c.provesCancel()
	} else {
		c.turnPastAll()
		c.drain(c.count, true)
	}
	after := collected()
	c.value = float64(max(full-before, 0)) / float64(c.count)
	if full > before {
		c.say("given_back_percent", 100*float64(full-after)/float64(full-before))
	}
	c.q.stop()
	c.check(c.count)
}

func collected() int64 {
	debug.FreeOSMemory()
	return resident()
}
