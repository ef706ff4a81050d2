//go:build !noekit

// The delay queue of ekit: a heap whose elements tell how long they have to wait.  Elements are
// plain values.  It has no capacity where memory is measured, else that of all jobs, so that its
// heap is reserved.

package main

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	ekit "github.com/ecodeclub/ekit/queue"
)

func init() {
	subjects = append(subjects, subject{
		name:  "go-ekit",
		about: "DelayQueue of ecodeclub/ekit " + moduleVersion("github.com/ecodeclub/ekit"),
		turns: true,
		open: func(s setup) queue {
			if s.payload > 0 {
				return openEkit[loaded](s)
			}
			return openEkit[plain](s)
		},
	})
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "of no known version"
}

// plain is an element without a payload.
type plain struct {
	at     int64
	number uint64
}

func (e plain) Delay() time.Duration {
	return time.Duration(e.at - now())
}

func (plain) wrap(number uint64, at int64, _ []byte) plain {
	return plain{at, number}
}

func (e plain) unwrap() job {
	return job{e.number, e.at, nil}
}

// loaded is one with a payload.
type loaded struct {
	plain
	data []byte
}

func (loaded) wrap(number uint64, at int64, data []byte) loaded {
	return loaded{plain{at, number}, data}
}

func (e loaded) unwrap() job {
	return job{e.number, e.at, e.data}
}

type element[T any] interface {
	ekit.Delayable
	wrap(number uint64, at int64, data []byte) T
	unwrap() job
}

type ekitQueue[T element[T]] struct {
	q         *ekit.DelayQueue[T]
	ctx       context.Context
	cancelAll context.CancelFunc
	consumers sync.WaitGroup
}

func openEkit[T element[T]](s setup) queue {
	capacity := int(s.jobs)
	if s.lean {
		capacity = 0
	}
	e := &ekitQueue[T]{q: ekit.NewDelayQueue[T](capacity)}
	e.ctx, e.cancelAll = context.WithCancel(context.Background())
	return e
}

func (e *ekitQueue[T]) put(number uint64, at int64, data []byte) handle {
	if at == 0 {
		at = now()
	}
	var maker T
	if err := e.q.Enqueue(e.ctx, maker.wrap(number, at, data)); err != nil {
		die(wrong, "go-ekit: %v", err)
	}
	return nil
}

func (e *ekitQueue[T]) cancel(handle) bool {
	return false
}

func (e *ekitQueue[T]) take() job {
	element, err := e.q.Dequeue(e.ctx)
	if err != nil {
		die(wrong, "go-ekit: %v", err)
	}
	return element.unwrap()
}

func (e *ekitQueue[T]) idle() bool {
	ctx, cancel := context.WithTimeout(e.ctx, 5*time.Millisecond)
	defer cancel()
	_, err := e.q.Dequeue(ctx)
	return errors.Is(err, context.DeadlineExceeded)
}

func (e *ekitQueue[T]) start(sinks []sink) {
	for _, s := range sinks {
		e.consumers.Add(1)
		go func() {
			defer e.consumers.Done()
			for {
				element, err := e.q.Dequeue(e.ctx)
				if err != nil {
					return
				}
				s.got(element.unwrap())
			}
		}()
	}
}

func (e *ekitQueue[T]) stop() {
	e.cancelAll()
	e.consumers.Wait()
}
