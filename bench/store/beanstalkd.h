/* beanstalkd.h - the work queue of that name, on a private server with a log on the same disk. */
#ifndef BENCH_BEANSTALKD_H
#define BENCH_BEANSTALKD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct beanstalkd {
    pid_t pid;
    char folder[200]; /* of its log */
    char socket[220];
};

/* False: it is not installed.  @sync_ms: how often it waits for the disk; 0: with each job. */
bool beanstalkd_start(struct beanstalkd *b, const char *folder, int sync_ms);
void beanstalkd_stop(struct beanstalkd *b);

/* Each answers the seconds it took for @jobs jobs: of so many callers, each of which sends @ahead
 * requests and then reads as many answers. */
double beanstalkd_put(struct beanstalkd *b, unsigned callers, size_t jobs, size_t ahead,
                      size_t payload, unsigned delay_s);
double beanstalkd_take(struct beanstalkd *b, size_t jobs, size_t ahead); /* and delete */

#endif
