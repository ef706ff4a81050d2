// fill_delayqueue.go - fill the Redis at 127.0.0.1:PORT as programs with delayqueue do: messages in
// every state, and one that a consumer has when it dies.
//
//	go mod init fill && go get github.com/hdt3213/delayqueue@v1.1.2 && go run fill_delayqueue.go PORT
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"time"

	"github.com/hdt3213/delayqueue"
	"github.com/redis/go-redis/v9"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// What has been given up is deleted in the same turn, unless the consumer dies between the two.
type noGarbageIsCollected struct{}

func (noGarbageIsCollected) DialHook(next redis.DialHook) redis.DialHook { return next }

func (noGarbageIsCollected) ProcessPipelineHook(
	next redis.ProcessPipelineHook,
) redis.ProcessPipelineHook {
	return next
}

func (noGarbageIsCollected) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "smembers" {
			cmd.SetErr(errors.New("not here"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func main() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	client.AddHook(noGarbageIsCollected{})
	at := func(year int) time.Time { return time.Date(year, 12, 1, 8, 0, 0, 0, time.UTC) }
	hangs := make(chan struct{})
	queue := delayqueue.NewQueue("orders", client, func(payload string) bool {
		if payload == "a worker has it" {
			close(hangs)
			select {}
		}
		return false
	}).WithFetchLimit(1).WithLogger(log.New(io.Discard, "", 0))
	send := func(payload string, tries int) {
		must(queue.SendDelayMsg(payload, -time.Second, delayqueue.WithRetryCount(tries)))
	}
	queue.StartConsume()
	send("given up", 0)
	time.Sleep(3 * time.Second)
	send("has failed once", 3)
	time.Sleep(1100 * time.Millisecond) // one turn: it fails, and waits for the next
	send("a worker has it", 0)
	<-hangs
	send("\x00\xff binary \"quoted\"\r\n", 3)
	send("ready after it", 3)
	must(queue.SendScheduleMsg("due in 2031", at(2031)))
	must(queue.SendScheduleMsg("the same second", at(2031), delayqueue.WithRetryCount(0)))
	tagged := delayqueue.NewQueue("orders", client, delayqueue.UseHashTagKey())
	must(tagged.SendScheduleMsg("of a cluster", at(2032), delayqueue.WithRetryCount(9)))
	time.Sleep(2 * time.Second)
	os.Exit(0)
}
