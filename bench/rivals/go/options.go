package main

import (
	"math"
	"slices"
	"strconv"
)

type options struct {
	subject   string
	jobs      int64
	producers int64
	consumers int64
	shape     string
	spread    int64 // ns
	payload   int64
	topics    int64
	seed      int64
	pin       bool
	live      int64
	gap       int64 // ns
	where     string
	percent   int64
	think     int64 // ns
	spin      int64 // ns
	idle      int64 // ns before each burst
	rehearsal bool  // not counted
}

var shapes = []string{
	"uniform", "exponential", "clustered", "heavy", "sawtooth", "equal", "decades",
}
var places = []string{"asleep", "same", "awake"}

func number(name, value string, least, most int64) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		die(usage, "%s: a number between %d and %d, not %s", name, least, most, value)
	}
	return n
}

func choice(name, value string, words []string) string {
	if !slices.Contains(words, value) {
		die(usage, "%s: not known: %s", name, value)
	}
	return value
}

func (o *options) set(name, value string) {
	switch name {
	case "--subject":
		o.subject = value
	case "--jobs":
		o.jobs = number(name, value, 1, math.MaxUint32/2)
	case "--producers":
		o.producers = number(name, value, 1, 512)
	case "--consumers":
		o.consumers = number(name, value, 1, 512)
	case "--batch":
		number(name, value, 0, 4096) // no queue here knows batches: one by one
	case "--shape":
		o.shape = choice(name, value, shapes)
	case "--spread-ns":
		o.spread = number(name, value, 0, 1000*hour)
	case "--payload":
		o.payload = number(name, value, 0, 4096)
	case "--topics":
		o.topics = number(name, value, 1, 60000)
	case "--seed":
		o.seed = number(name, value, 0, math.MaxInt64)
	case "--live":
		o.live = number(name, value, 1, math.MaxUint32/2)
	case "--gap-ns":
		o.gap = number(name, value, 1, 60*second)
	case "--where":
		o.where = choice(name, value, places)
	case "--percent":
		o.percent = number(name, value, 0, 100)
	case "--think-ns":
		o.think = number(name, value, 0, 60*second)
	case "--spin-ns":
		o.spin = number(name, value, 0, second)
	default:
		die(usage, "no such option: %s", name)
	}
}

func parse(args []string) options {
	o := options{jobs: -1, producers: 1, consumers: 1, shape: "uniform", spread: -1, topics: 1,
		seed: 42, live: 100_000, gap: 1_000_000, where: "asleep", percent: 50, think: 1_000_000,
		idle: 5_000_000}
	for i := 0; i < len(args); i++ {
		if args[i] == "--pin" {
			o.pin = true
			continue
		}
		if i+1 == len(args) {
			die(usage, "%s: no value", args[i])
		}
		o.set(args[i], args[i+1])
		i++
	}
	if o.subject == "" {
		die(usage, "which --subject?")
	}
	if o.payload > 0 && o.payload < 8 {
		die(usage, "--payload: 0, or 8 and more")
	}
	return o
}
