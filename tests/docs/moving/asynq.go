package page

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
)

func page(client *asynq.Client, mux *asynq.ServeMux, payload []byte, send func(*asynq.Task) error) {
	// BLOCK
}
