/* pool.h - a pool of workers beside the clients. */
#ifndef SIMULATE_POOL_H
#define SIMULATE_POOL_H

struct program;

void pool_start(struct program *p);
/* Nobody else uses the queue: what is there is handled by the pool, all of it. */
void pool_drain(struct program *p);
void pool_stop(struct program *p);
void pool_free(struct program *p);

#endif
