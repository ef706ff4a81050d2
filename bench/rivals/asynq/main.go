// bench_asynq runs one cell of a shared queue: asynq on a private redis-server without a log.
//
//	bench_asynq WORKLOAD --subject asynq [--option VALUE]...
//	bench_asynq --list | --list-workloads
//
// README.md of the benchmarks says what the options, the line and the exit status mean.  With the
// word consume it is one of its own processes that consume (crew.go).
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Exit statuses.
const (
	wrong  = 1 // the outcome
	usage  = 2
	cannot = 3
)

const (
	second = int64(time.Second)
	hour   = 3600 * second
	most   = 4096
)

func die(status int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
	cleanUp()
	os.Exit(status)
}

type options struct {
	subject                         string
	jobs                            uint64
	producers, consumers, processes int64
	batch, payload                  int64
	gap, poll                       int64 // ns; poll 0: as asynq has it
	server                          string
}

type workload struct {
	name, about, unit string
	jobs              uint64
	run               func(o *options) line
}

var workloads = []workload{
	{"shared-put", "putting in jobs far away", "jobs/s", 100_000, runPut},
	{"shared-work", "taking and acking jobs that are due", "jobs/s", 100_000, runWork},
	{"shared-late", "how late a job is taken by one who waits", "us", 200, runLate},
}

func number(name, value string, least, highest int64) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > highest {
		die(usage, "%s: a number between %d and %d, not %s", name, least, highest, value)
	}
	return n
}

func (o *options) set(name, value string) {
	switch name {
	case "--subject":
		o.subject = value
	case "--jobs":
		o.jobs = uint64(number(name, value, 1, 1<<31))
	case "--producers":
		o.producers = number(name, value, 1, most)
	case "--consumers":
		o.consumers = number(name, value, 1, 64)
	case "--processes":
		o.processes = number(name, value, 1, 64)
	case "--batch":
		o.batch = number(name, value, 0, most)
	case "--payload":
		o.payload = number(name, value, 8, 1024)
	case "--gap-ns":
		o.gap = number(name, value, 1, 60*second)
	case "--poll-ns":
		o.poll = number(name, value, 1, 60*second)
	case "--server":
		o.server = value
	default:
		die(usage, "no such option: %s", name)
	}
}

func parse(words []string, jobs uint64) *options {
	o := &options{jobs: jobs, producers: 1, consumers: 1, processes: 1, payload: 64,
		gap: 20 * int64(time.Millisecond)}
	for i := 0; i < len(words); i += 2 {
		if i+1 == len(words) {
			die(usage, "%s: no value", words[i])
		}
		o.set(words[i], words[i+1])
	}
	if o.consumers%o.processes != 0 {
		die(usage, "--consumers: a multiple of --processes")
	}
	return o
}

// version of asynq, as it was built in.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, one := range info.Deps {
			if one.Path == "github.com/hibiken/asynq" {
				return one.Version
			}
		}
	}
	return ""
}

func list(what string) {
	if what == "--list" {
		fmt.Printf("asynq\tasynq %s on Redis, %s\t\n", version(), runtime.Version())
		return
	}
	for _, w := range workloads {
		fmt.Printf("%s\t%s\t%s\n", w.name, w.about, w.unit)
	}
}

func main() {
	if len(os.Args) == 2 && strings.HasPrefix(os.Args[1], "--list") {
		list(os.Args[1])
		return
	}
	if len(os.Args) < 2 {
		die(usage, "usage: bench_asynq WORKLOAD --subject asynq [--option VALUE]...")
	}
	if os.Args[1] == "consume" {
		consume(parse(os.Args[2:], 1))
		return
	}
	for _, w := range workloads {
		if w.name != os.Args[1] {
			continue
		}
		o := parse(os.Args[2:], w.jobs)
		if o.subject != "asynq" {
			die(usage, "which --subject?")
		}
		l := w.run(o)
		cleanUp()
		l.check(o.jobs)
		l.print(w)
		return
	}
	die(usage, "no such workload: %s", os.Args[1])
}
