package page

import (
	"time"

	"github.com/hdt3213/delayqueue"
)

func page(redisCli *delayqueue.Client, send func(string) bool) {
	// BLOCK
}
