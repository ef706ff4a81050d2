package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
)

// A process that consumes says "ready", begins when it is told a line, says from time to time how
// many jobs it has done, and ends when its input does: with what it has counted, and when each job
// was had, if there are few.

const few = 10_000

type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	done    atomic.Uint64
	counted chan taken
}

// taken is what a process has counted, or all of them.
type taken struct {
	count, hash, garbled uint64
	last                 int64 // ns: when the last job was done
	used                 account
	had                  map[uint64]int64
}

var crew []*process

func startCrew(o *options) {
	self, err := os.Executable()
	if err != nil {
		die(wrong, "%v", err)
	}
	for range o.processes {
		p := &process{counted: make(chan taken, 1)}
		words := []string{"consume", "--server", o.server,
			"--consumers", strconv.FormatInt(o.consumers/o.processes, 10),
			"--batch", strconv.FormatInt(o.batch, 10),
			"--payload", strconv.FormatInt(o.payload, 10),
			"--jobs", strconv.FormatUint(o.jobs, 10)}
		if o.poll > 0 {
			words = append(words, "--poll-ns", strconv.FormatInt(o.poll, 10))
		}
		p.command = exec.Command(self, words...)
		p.command.Stderr = os.Stderr
		p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		p.in, _ = p.command.StdinPipe()
		out, _ := p.command.StdoutPipe()
		p.out = bufio.NewScanner(out)
		if err := p.command.Start(); err != nil {
			die(wrong, "%v", err)
		}
		crew = append(crew, p)
	}
	for _, p := range crew {
		if !p.out.Scan() || p.out.Text() != "ready" {
			die(wrong, "a process that consumes does not start")
		}
		go p.listen()
	}
}

// listen reads what a process says, until it ends.
func (p *process) listen() {
	all := taken{had: map[uint64]int64{}}
	for p.out.Scan() {
		var n, at uint64
		switch text := p.out.Text(); {
		case text[0] == '+':
			_, _ = fmt.Sscanf(text, "+%d", &n)
			p.done.Store(n)
		case text[0] == '@':
			_, _ = fmt.Sscanf(text, "@%d %d", &n, &at)
			all.had[n] = int64(at)
		default:
			_, _ = fmt.Sscan(text, &all.count, &all.hash, &all.garbled, &all.last, &all.used.cpu,
				&all.used.voluntary, &all.used.involuntary)
		}
	}
	p.counted <- all
}

// beginCrew answers when they were let begin.
func beginCrew() int64 {
	at := time.Now().UnixNano()
	for _, p := range crew {
		fmt.Fprintln(p.in, "go")
	}
	return at
}

// waitCrew returns when so many jobs are done, and a while after: some might come a second time.
func waitCrew(jobs uint64) {
	seen, since := uint64(0), time.Now()
	for {
		count := uint64(0)
		for _, p := range crew {
			count += p.done.Load()
		}
		if count >= jobs {
			break
		}
		if count != seen {
			seen, since = count, time.Now()
		}
		if time.Since(since) > 20*time.Second {
			die(wrong, "%d jobs of %d were done, and no more", count, jobs)
		}
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
}

func endCrew(jobs uint64) taken {
	waitCrew(jobs)
	sum := taken{had: map[uint64]int64{}}
	for _, p := range crew {
		_ = p.in.Close()
	}
	for _, p := range crew {
		one := <-p.counted
		if p.command.Wait() != nil {
			die(wrong, "a process that consumes did not end well")
		}
		sum.count += one.count
		sum.hash += one.hash
		sum.garbled += one.garbled
		sum.last = max(sum.last, one.last)
		sum.used.cpu += one.used.cpu
		sum.used.voluntary += one.used.voluntary
		sum.used.involuntary += one.used.involuntary
		for number, at := range one.had {
			sum.had[number] = at
		}
	}
	crew = nil
	if sum.garbled > 0 {
		die(wrong, "%d jobs were not as they went in", sum.garbled)
	}
	return sum
}

func stopCrew() {
	for _, p := range crew {
		if p.command.Process != nil {
			_ = p.command.Process.Kill()
		}
	}
	crew = nil
}

// tally is what handlers count together.
type tally struct {
	sync.Mutex
	taken
}

func (t *tally) add(number uint64, intact, keeps bool) {
	now := time.Now().UnixNano()
	t.Lock()
	defer t.Unlock()
	t.count++
	t.last = now
	if !intact {
		t.garbled++
		return
	}
	t.hash += mix(number)
	if keeps {
		t.had[number] = now
	}
}

// consume is the whole of a process that does.
func consume(o *options) {
	all := &tally{taken: taken{had: map[uint64]int64{}}}
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return
	}
	before := usageNow()
	running := serve(o, func(bytes []byte) {
		number, intact := read(bytes, o.payload)
		all.add(number, intact, o.jobs <= few)
	})
	over := make(chan struct{})
	go func() {
		_, _ = in.ReadString('\n')
		close(over)
	}()
	tell(all, over)
	used := usageNow().since(before)
	stop(running)
	fmt.Println(all.count, all.hash, all.garbled, all.last, used.cpu, used.voluntary,
		used.involuntary)
	for number, at := range all.had {
		fmt.Printf("@%d %d\n", number, at)
	}
}

// tell says how many jobs are done, whenever there are more, until it is over.
func tell(all *tally, over chan struct{}) {
	said := uint64(0)
	for {
		select {
		case <-over:
			return
		case <-time.After(5 * time.Millisecond):
		}
		all.Lock()
		count := all.count
		all.Unlock()
		if count != said {
			fmt.Printf("+%d\n", count)
			said = count
		}
	}
}

// stop lets asynq shut down in its own time, which no longer counts.
func stop(running *asynq.Server) {
	running.Shutdown()
}
