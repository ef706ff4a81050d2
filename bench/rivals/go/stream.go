package main

import (
	"encoding/binary"
	"math"
)

func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// stream is the stream of jobs: what is random in them, by their number.
type stream struct {
	seed   uint64
	shape  string
	spread int64
	delays []int64 // by number, where they are costly to make
}

func newStream(o *options, count int64) stream {
	s := stream{seed: uint64(o.seed), shape: o.shape, spread: o.spread}
	switch o.shape {
	case "exponential", "heavy", "decades":
		delays := make([]int64, count)
		for i := range delays {
			delays[i] = s.shaped(uint64(i))
		}
		s.delays = delays
	}
	return s
}

func (s *stream) random(number uint64) uint64 {
	return mix(s.seed + number*0x9e3779b97f4a7c15)
}

func (s *stream) delay(number uint64) int64 {
	if s.delays != nil {
		return s.delays[number]
	}
	if s.shape == "uniform" {
		return int64(float64(s.random(number)>>11) * 0x1p-53 * float64(s.spread))
	}
	return s.shaped(number)
}

func (s *stream) shaped(number uint64) int64 {
	r := s.random(number)
	spread := float64(s.spread)
	u := (float64(r>>11) + 0.5) * 0x1p-53
	switch s.shape {
	case "exponential":
		return s.clip(-math.Log(u) * spread / 8)
	case "clustered":
		near := uint64(max(s.spread/10000, 1))
		return int64(spread*float64(r&15)/16) + int64((r>>11)%near)
	case "heavy":
		return s.clip(spread / 10000 * (math.Pow(u, -1/1.1) - 1))
	case "sawtooth":
		return s.spread - s.spread/1000*int64(number%1000)
	case "equal":
		return s.spread / 2
	default: // decades
		return s.clip(math.Pow(10, 9*u) * spread / 1e9)
	}
}

func (s *stream) clip(ns float64) int64 {
	if ns < float64(s.spread) {
		return int64(ns)
	}
	return s.spread
}

// meanSpread is the spread with a mean delay of about a second.
func meanSpread(shape string) int64 {
	switch shape {
	case "exponential":
		return 8 * second
	case "heavy":
		return 1661 * second
	case "decades":
		return second * 207 / 10
	default:
		return 2 * second
	}
}

// shuffled is the order in which n things are cancelled.
func (s *stream) shuffled(n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	for i := uint64(n); i > 1; i-- {
		k := s.random(math.MaxUint64-i) % i
		order[i-1], order[k] = order[k], order[i-1]
	}
	return order
}

// payload is the number, repeated.
func payload(number uint64, size int64) []byte {
	if size == 0 {
		return nil
	}
	whole := make([]byte, (size+7)/8*8)
	for at := 0; at < len(whole); at += 8 {
		binary.LittleEndian.PutUint64(whole[at:], number)
	}
	return whole[:size]
}

func intact(j job, size int64) bool {
	if int64(len(j.data)) != size {
		return false
	}
	last := size - size%8 - 8
	return binary.LittleEndian.Uint64(j.data) == j.number &&
		binary.LittleEndian.Uint64(j.data[last:]) == j.number
}
