// Package asynq has of the client of that name what docs/moving/asynq.md shows, as types.
package asynq

import (
	"context"
	"time"
)

type Option interface{ of() }

type option struct{}

func (option) of() {}

func ProcessIn(time.Duration) Option { return option{} }
func MaxRetry(int) Option            { return option{} }
func Unique(time.Duration) Option    { return option{} }

type Task struct{}

func NewTask(name string, payload []byte, options ...Option) *Task { return nil }

type TaskInfo struct{}

type Client struct{}

func (*Client) Enqueue(task *Task, options ...Option) (*TaskInfo, error) { return nil, nil }

type ServeMux struct{}

func (*ServeMux) HandleFunc(pattern string, handler func(context.Context, *Task) error) {}
