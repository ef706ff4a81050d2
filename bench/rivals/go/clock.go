package main

import "time"

const (
	second = int64(time.Second)
	hour   = 3600 * second
	start  = 1000 * second // what the virtual clock shows at first
)

var (
	epoch  = time.Now()
	stands bool
	shown  int64
)

// realNow is monotonic, whatever now shows.
func realNow() int64 {
	return int64(time.Since(epoch))
}

// now is what queues go by: real, or a virtual clock, which one goroutine turns while no other
// looks at it.
func now() int64 {
	if stands {
		return shown
	}
	return realNow()
}

func spinUntil(at int64) {
	for realNow() < at {
	}
}
