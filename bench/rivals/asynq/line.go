package main

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
)

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// delay of a job that is put in far away: an hour, and within one more.
func delay(number uint64) int64 {
	r := mix(42 + number*0x9e3779b97f4a7c15)
	return hour + int64(float64(r>>11)*0x1p-53*float64(hour))
}

// payload is the 8 bytes of the number, repeated.
func payload(number uint64, size int64) []byte {
	var eight [8]byte
	binary.LittleEndian.PutUint64(eight[:], number)
	bytes := make([]byte, size)
	for i := range bytes {
		bytes[i] = eight[i%8]
	}
	return bytes
}

func read(bytes []byte, size int64) (number uint64, intact bool) {
	if int64(len(bytes)) != size {
		return 0, false
	}
	for i := range bytes {
		if bytes[i] != bytes[i%8] {
			return 0, false
		}
	}
	return binary.LittleEndian.Uint64(bytes), true
}

func hashBelow(count uint64) (hash uint64) {
	for i := range count {
		hash += mix(i)
	}
	return hash
}

// account is what a process has used, or the difference of two.
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

func (a account) since(before account) account {
	return account{a.cpu - before.cpu, a.voluntary - before.voluntary,
		a.involuntary - before.involuntary}
}

// line is what a cell prints.
type line struct {
	value, wall float64
	used        account
	count, hash uint64
	more        []string
}

func (l *line) say(name string, value float64) {
	l.more = append(l.more, fmt.Sprintf("%q:%.6g", name, value))
}

// sayServer tells what the server has used since, a job, and answers what it has used now.
func (l *line) sayServer(name string, before float64, jobs uint64) float64 {
	now := serverSeconds()
	if before >= 0 && now >= 0 {
		l.say(name, (now-before)/float64(jobs)*1e6)
	}
	return now
}

func (l *line) check(jobs uint64) {
	if l.count != jobs {
		die(wrong, "%d jobs came out, not %d", l.count, jobs)
	}
	if l.hash != hashBelow(jobs) {
		die(wrong, "jobs are lost and others doubled")
	}
}

func (l *line) print(w workload) {
	fmt.Printf(`{"workload":%q,"subject":"asynq","value":%.6g,"unit":%q,"count":%d,`+
		`"hash":"%016x","wall_s":%.6f,"cpu_s":%.6f,"voluntary":%d,"involuntary":%d,"more":{%s}}`+
		"\n", w.name, l.value, w.unit, l.count, l.hash, l.wall, l.used.cpu, l.used.voluntary,
		l.used.involuntary, strings.Join(l.more, ","))
}
