package main

import (
	"fmt"
	"slices"
	"strings"
)

// tally counts what came out.
type tally struct {
	count, hash, early, garbled uint64
}

func (t *tally) add(j job, size int64) {
	t.count++
	t.hash += mix(j.number)
	if size > 0 && !intact(j, size) {
		t.garbled++
	}
}

// cancelled counts a job as out that nobody will get any more.
func (t *tally) cancelled(number uint64) {
	t.count++
	t.hash += mix(number)
}

func (t *tally) sum(other tally) {
	t.count += other.count
	t.hash += other.hash
	t.early += other.early
	t.garbled += other.garbled
}

// check dies unless all numbers below count came out, once each, intact and not early.
func (c *cell) check(count int64) {
	hash := uint64(0)
	for i := range uint64(count) {
		hash += mix(i)
	}
	switch out := &c.out; {
	case out.early > 0:
		die(wrong, "%d jobs were early", out.early)
	case out.garbled > 0:
		die(wrong, "%d jobs were not as they went in", out.garbled)
	case out.count != uint64(count):
		die(wrong, "%d jobs came out, not %d", out.count, count)
	case out.hash != hash:
		die(wrong, "jobs are lost and others doubled: the hash is %016x, not %016x", out.hash, hash)
	}
}

func (c *cell) say(name string, value float64) {
	c.more = append(c.more, fmt.Sprintf("%q:%.6g", name, value))
}

func (c *cell) print(w *workload) {
	fmt.Printf(`{"workload":%q,"subject":%q,"value":%.6g,"unit":%q,"count":%d,"hash":"%016x",`+
		`"wall_s":%.6f,"cpu_s":%.6f,"voluntary":%d,"involuntary":%d,"more":{%s}}`+"\n",
		w.name, c.subject.name, c.value, w.unit, c.out.count, c.out.hash, c.wall, c.used.cpu,
		c.used.voluntary, c.used.involuntary, strings.Join(c.more, ","))
}

// percentile of sorted times, in us.
func percentile(sorted []int64, percent float64) float64 {
	at := int(percent / 100 * float64(len(sorted)))
	return float64(sorted[min(at, len(sorted)-1)]) / 1e3
}

func sorted(times []int64) []int64 {
	slices.Sort(times)
	return times
}
