// bench_go runs one cell: a queue in Go does one workload once, and prints one line.
//
//	bench_go WORKLOAD --subject NAME [--option VALUE]...
//	bench_go --list | --list-workloads
//
// README.md of the benchmarks says what the options, the line and the exit status mean.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Exit statuses.
const (
	wrong  = 1 // the outcome
	usage  = 2
	cannot = 3
)

func die(status int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
	os.Exit(status)
}

type workload struct {
	name, about, unit string
	jobs              int64 // default
	spread            int64 // default, -1: the workload reckons it
	cancels, turns    bool  // what it needs
	warm              func(o options) options
	run               func(c *cell)
}

// In the order of the table of README.md.
var workloads = []workload{
	{"enqueue", "putting in jobs far away", "M/s", million, hour, false, false, same, workEnqueue},
	{"through", "putting in while others take", "M/s", million, 0, false, false, fewer,
		workThrough},
	{"lateness", "how late a job is taken", "us", 10000, -1, false, false, nil, workLateness},
	{"handoff", "from putting in to a blocked consumer", "us", 2000, 0, false, false, fewer,
		workHandoff},
	{"cancel", "cancelling jobs in random order", "M/s", million, hour, true, false, same,
		workCancel},
	{"timeout", "putting in a job and cancelling the oldest", "M pairs/s", million, second, true,
		false, fewer, workTimeout},
	{"hold", "taking the head and putting it back later", "ns", million, -1, false, true, fewer,
		workHold},
	{"memory", "resident memory of a pending job", "bytes", million, hour, false, false, nil,
		workMemory},
	{"mixed", "putting in, cancelling some, taking the rest", "ns a job", million, hour, false,
		true, same, workMixed},
	{"burst", "many jobs at once after a pause", "ns a job", 100_000, 0, false, false, hurry,
		workBurst},
	{"slow", "putting in while the consumers are busy", "M/s", million, 0, false, false, fewer,
		workSlow},
}

const million = 1_000_000

// What is not counted, before: the same, so that the heap has been as large as it will be.
func same(o options) options {
	o.rehearsal = true
	return o
}

// Less of it, where it is only about code and threads that have run before.
func fewer(o options) options {
	o.rehearsal = true
	o.jobs = max(o.jobs/10, 1)
	return o
}

func hurry(o options) options {
	o.idle = 100_000
	return fewer(o)
}

func list() {
	for _, s := range subjects {
		fmt.Printf("%s\t%s, %s\t%s\n", s.name, s.about, runtime.Version(),
			strings.Join(s.can(), " "))
	}
}

func find(args []string) (*workload, options, *subject) {
	o := parse(args[2:])
	for i := range workloads {
		if workloads[i].name != args[1] {
			continue
		}
		w := &workloads[i]
		if o.jobs < 0 {
			o.jobs = w.jobs
		}
		if o.spread < 0 {
			o.spread = w.spread
		}
		for k := range subjects {
			if subjects[k].name == o.subject {
				return w, o, &subjects[k]
			}
		}
		die(usage, "no such subject: %s", o.subject)
	}
	die(usage, "no such workload: %s", args[1])
	return nil, o, nil
}

// Can this subject do what is asked for?
func qualify(w *workload, o *options, s *subject) {
	cancels := w.cancels || w.name == "mixed" && o.percent > 0
	switch {
	case w.turns && !s.turns:
		die(cannot, "%s cannot be given a virtual clock", s.name)
	case cancels && !s.cancels:
		die(cannot, "%s cannot cancel", s.name)
	case o.topics > 1:
		die(cannot, "%s has no topics", s.name)
	case o.spin > 0:
		die(cannot, "%s cannot take early and spin", s.name)
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--list" {
		list()
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "--list-workloads" {
		for _, w := range workloads {
			fmt.Printf("%s\t%s\t%s\n", w.name, w.about, w.unit)
		}
		return
	}
	if len(os.Args) < 2 {
		die(usage, "usage: bench_go WORKLOAD --subject NAME [--option VALUE]...")
	}
	w, o, s := find(os.Args)
	qualify(w, &o, s)
	if o.pin {
		pinProcess(cores()[:1])
	}
	if w.warm != nil {
		w.run(&cell{options: w.warm(o), subject: s})
		runtime.GC()
	}
	c := &cell{options: o, subject: s}
	w.run(c)
	c.print(w)
}
