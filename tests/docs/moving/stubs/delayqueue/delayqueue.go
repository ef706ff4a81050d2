// Package delayqueue has of the library of that name what docs/moving/delayqueue.md shows, as
// types.
package delayqueue

import "time"

// Client stands for one of github.com/redis/go-redis/v9.
type Client struct{}

type DelayQueue struct{}

func NewQueue(name string, client *Client, callbacks ...interface{}) *DelayQueue { return nil }

func (q *DelayQueue) WithConcurrent(count uint) *DelayQueue { return q }

func WithRetryCount(count int) interface{} { return count }

type option = interface{}

func (q *DelayQueue) SendDelayMsg(payload string, delay time.Duration, options ...option) error {
	return nil
}

func (q *DelayQueue) StartConsume() (done <-chan struct{}) { return nil }
