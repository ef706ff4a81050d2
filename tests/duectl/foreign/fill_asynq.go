// fill_asynq.go - fill the Redis at 127.0.0.1:PORT as programs with asynq do: tasks in every state,
// and one that a worker has when it dies.
//
//	go mod init fill && go get github.com/hibiken/asynq@v0.26.0 && go run fill_asynq.go PORT
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/hibiken/asynq"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	redis := asynq.RedisClientOpt{Addr: "127.0.0.1:" + os.Args[1]}
	client := asynq.NewClient(redis)
	put := func(kind, payload string, options ...asynq.Option) {
		_, err := client.Enqueue(asynq.NewTask(kind, []byte(payload)), options...)
		must(err)
	}
	at := func(year int) asynq.Option {
		return asynq.ProcessAt(time.Date(year, 12, 1, 8, 0, 0, 0, time.UTC))
	}

	put("try:fail", "fails", asynq.TaskID("fails"), asynq.MaxRetry(7))
	put("try:skip", "gives up", asynq.TaskID("gives-up"), asynq.MaxRetry(7))
	put("try:last", "its last try", asynq.TaskID("last"), asynq.MaxRetry(0))
	put("try:done", "is done", asynq.TaskID("done"), asynq.Retention(24*time.Hour))
	put("try:hang", "hangs", asynq.TaskID("hangs"), asynq.MaxRetry(3))
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: 5,
		LogLevel:    asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration {
			return 24 * 365 * 10 * time.Hour
		},
	})
	must(server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		switch task.Type() {
		case "try:fail":
			return errors.New("no such host: \"mail\"")
		case "try:skip":
			return errors.Join(errors.New("a broken address"), asynq.SkipRetry)
		case "try:last":
			return errors.New("out of luck, and of words to say how far out of luck that is")
		case "try:hang":
			select {}
		}
		return nil
	})))
	time.Sleep(3 * time.Second)

	// This server asks for tasks of the default queue alone.
	put("mail:welcome", "first", asynq.TaskID("first"), asynq.Queue("mail"))
	put("mail:welcome", "\x00\xff\xfe binary \"quoted\"\r\n", asynq.TaskID("binary"),
		asynq.Queue("mail"), asynq.MaxRetry(4), asynq.Timeout(time.Minute))
	put("mail:later", "scheduled", asynq.TaskID("scheduled"), asynq.Queue("mail"), at(2031),
		asynq.Unique(time.Hour), asynq.MaxRetry(2))
	put("mail:later", "scheduled too", asynq.TaskID("scheduled-2"), asynq.Queue("mail"), at(2031),
		asynq.Deadline(time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)))
	put("mail:empty", "", asynq.TaskID("empty"), asynq.Queue("mail"), at(2032))
	put("mail:digest", "together", asynq.TaskID("grouped"), asynq.Queue("mail"), asynq.Group("g"))
	os.Exit(0)
}
