package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

// What asynq has is used as its documentation shows.  A Client puts in one task a call, and there
// is no call for many: who wants more at a time calls from more goroutines, which share its pool of
// connections.  A Server takes one task a command, too, and runs as many handlers at once as its
// Concurrency says; a batch here is so many for each consumer.  It looks for tasks that have come
// due every 5 s, and in an empty queue every second or so; --poll-ns makes both that.

const kind = "bench"

func connection(o *options) asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Network: "unix", Addr: o.server, PoolSize: int(o.producers)}
}

func serve(o *options, handle func([]byte)) *asynq.Server {
	to := asynq.RedisClientOpt{Network: "unix", Addr: o.server}
	running := asynq.NewServer(to, asynq.Config{
		Concurrency:              int(o.consumers * max(o.batch, 1)),
		TaskCheckInterval:        time.Duration(o.poll),
		DelayedTaskCheckInterval: time.Duration(o.poll),
		LogLevel:                 asynq.ErrorLevel,
	})
	err := running.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		handle(task.Payload())
		return nil
	}))
	if err != nil {
		die(wrong, "%v", err)
	}
	return running
}

// put one job; at the zero time it is due at once.
func put(client *asynq.Client, o *options, number uint64, at time.Time) {
	task := asynq.NewTask(kind, payload(number, o.payload))
	var err error
	if at.IsZero() {
		_, err = client.Enqueue(task)
	} else {
		_, err = client.Enqueue(task, asynq.ProcessAt(at))
	}
	if err != nil {
		die(wrong, "%v", err)
	}
}

// putAll answers the seconds it took.
func putAll(o *options, client *asynq.Client, far bool) float64 {
	var done sync.WaitGroup
	before := time.Now()
	for p := range uint64(o.producers) {
		done.Add(1)
		go func() {
			defer done.Done()
			for number := p; number < o.jobs; number += uint64(o.producers) {
				at := time.Time{}
				if far {
					at = time.Now().Add(time.Duration(delay(number)))
				}
				put(client, o, number, at)
			}
		}()
	}
	done.Wait()
	return time.Since(before).Seconds()
}

// jobs that the server has: not due yet; and due, or taken and not acked.
func jobs(o *options) (later, other uint64) {
	inspector := asynq.NewInspector(connection(o))
	defer inspector.Close()
	info, err := inspector.GetQueueInfo("default")
	if err != nil {
		die(wrong, "%v", err)
	}
	return uint64(info.Scheduled), uint64(info.Size - info.Scheduled)
}

func runPut(o *options) (l line) {
	o.server = startServer()
	client := asynq.NewClient(connection(o))
	defer client.Close()
	before, server := usageNow(), serverSeconds()
	l.wall = putAll(o, client, true)
	l.used = usageNow().since(before)
	l.sayServer("server_us", server, o.jobs)
	l.value = float64(o.jobs) / l.wall
	later, other := jobs(o)
	if other > 0 {
		die(wrong, "%d jobs are due at once", other)
	}
	l.count = later
	l.hash = hashBelow(l.count)
	return l
}

// noneLeft: who does not ack is fast.
func noneLeft(o *options) {
	if later, other := jobs(o); later+other > 0 {
		die(wrong, "%d jobs are left", later+other)
	}
}

func (l *line) take(all taken, began int64) {
	l.count, l.hash, l.used = all.count, all.hash, all.used
	l.wall = float64(all.last-began) / 1e9
}

// runWork: 64 goroutines put in, which is not measured.
func runWork(o *options) (l line) {
	o.server = startServer()
	in := *o
	in.producers = 64
	startCrew(o)
	client := asynq.NewClient(connection(&in))
	server := serverSeconds()
	putAll(&in, client, false)
	client.Close()
	between := l.sayServer("put_server_us", server, o.jobs)
	began := beginCrew()
	l.take(endCrew(o.jobs), began)
	noneLeft(o)
	l.sayServer("work_server_us", between, o.jobs)
	l.sayServer("life_server_us", server, o.jobs)
	l.value = float64(o.jobs) / l.wall
	return l
}

// runLate: times are whole seconds in asynq, so ours are rounded up.
func runLate(o *options) (l line) {
	if o.jobs > few {
		die(usage, "--jobs: at most %d", few)
	}
	o.server = startServer()
	startCrew(o)
	client := asynq.NewClient(connection(o))
	defer client.Close()
	began := beginCrew()
	start := time.Now().Add(100 * time.Millisecond)
	due := make([]int64, o.jobs)
	for i := range due {
		time.Sleep(time.Until(start.Add(time.Duration(int64(i) * o.gap))))
		at := time.Now().Add(time.Second + time.Second - 1).Truncate(time.Second)
		due[i] = at.UnixNano()
		put(client, o, uint64(i), at)
	}
	all := endCrew(o.jobs)
	l.take(all, began)
	noneLeft(o)
	late := make([]float64, len(due))
	for i := range due {
		late[i] = float64(all.had[uint64(i)]-due[i]) / 1e3
		if late[i] < 0 {
			die(wrong, "a job is early by %g us", -late[i])
		}
	}
	slices.Sort(late)
	last := len(late) - 1
	l.value = late[last/2]
	l.say("p99_us", late[last*99/100])
	l.say("most_us", late[last])
	return l
}
