// The timers of Go: each job is a time.AfterFunc that sends it to a channel, and consumers receive
// from that.

package main

import (
	"sync"
	"time"
)

func init() {
	subjects = append(subjects, subject{
		name:    "go-timers",
		about:   "time.AfterFunc and a channel",
		cancels: true,
		open:    openTimers,
	})
}

const channelRoom = 1024

type timersQueue struct {
	due       chan job
	consumers sync.WaitGroup
}

func openTimers(setup) queue {
	return &timersQueue{due: make(chan job, channelRoom)}
}

func (t *timersQueue) put(number uint64, at int64, data []byte) handle {
	wait := time.Duration(0)
	if at != 0 {
		wait = time.Duration(at - now())
	}
	return time.AfterFunc(wait, func() { t.due <- job{number, at, data} })
}

func (t *timersQueue) cancel(h handle) bool {
	return h.(*time.Timer).Stop()
}

func (t *timersQueue) take() job {
	return <-t.due
}

func (t *timersQueue) idle() bool {
	select {
	case <-t.due:
		return false
	default:
		return true
	}
}

func (t *timersQueue) start(sinks []sink) {
	for _, s := range sinks {
		t.consumers.Add(1)
		go func() {
			defer t.consumers.Done()
			for j := range t.due {
				s.got(j)
			}
		}()
	}
}

func (t *timersQueue) stop() {
	close(t.due)
	t.consumers.Wait()
}
