package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// account is what the process has used, or the difference of two.
type account struct {
	cpu                    float64 // s
	voluntary, involuntary int64
}

func usageNow() account {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		die(wrong, "getrusage: %v", err)
	}
	return account{float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, u.Nvcsw, u.Nivcsw}
}

// resident is the resident memory of the process.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		die(wrong, "%v", err)
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

type cpuSet [16]uint64

// cores are those that the process may run on.
func cores() []int {
	var set cpuSet
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(set),
		uintptr(unsafe.Pointer(&set)))
	if errno != 0 {
		die(cannot, "sched_getaffinity: %v", errno)
	}
	var list []int
	for i := 0; i < len(set)*64; i++ {
		if set[i/64]&(1<<(i%64)) != 0 {
			list = append(list, i)
		}
	}
	return list
}

// pinThread lets a thread, or with 0 the calling one, run on these cores only.
func pinThread(thread int, cores []int) {
	var set cpuSet
	for _, core := range cores {
		set[core/64] |= 1 << (core % 64)
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(thread),
		unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set)))
	if errno != 0 && errno != syscall.ESRCH {
		die(cannot, "a thread cannot be pinned: %v", errno)
	}
}

// pinProcess pins all threads; those to come inherit it.  The scheduler of Go would have set itself
// to as many cores, had it been started so.
func pinProcess(cores []int) {
	runtime.GOMAXPROCS(min(len(cores), runtime.GOMAXPROCS(0)))
	pinThreads(cores)
}

func pinThreads(cores []int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		die(cannot, "%v", err)
	}
	for _, task := range tasks {
		id, _ := strconv.Atoi(task.Name())
		pinThread(id, cores)
	}
}

// hog keeps a core from idling, and gives way to whoever has work, until the result is called.  It
// is another process: a goroutine that never ends would take a processor from Go's scheduler.
func hog(core int) (stop func()) {
	for _, tool := range []string{"chrt", "taskset"} {
		if _, err := exec.LookPath(tool); err != nil {
			die(cannot, "there is no command %s", tool)
		}
	}
	loop := "while kill -0 " + strconv.Itoa(os.Getpid()) + " 2>/dev/null; do :; done"
	command := exec.Command("chrt", "--idle", "0", "taskset", "-c", strconv.Itoa(core),
		"sh", "-c", loop)
	if err := command.Start(); err != nil {
		die(cannot, "no process of policy SCHED_IDLE to be had: %v", err)
	}
	return func() {
		command.Process.Kill()
		command.Wait()
	}
}
