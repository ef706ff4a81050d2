package page

import "time"

type connection struct {
	timer *time.Timer
}

func page(c *connection, silent chan *connection) {
	// BLOCK
}
