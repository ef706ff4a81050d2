/* bare_shared.c - the scripts of a shared queue, called by hand over one socket. */
#include "bare_shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "lab/redis/share_lab.h"

static struct share s;

static void begin(const char *socket_path)
{
    share_begin(&s, socket_path, "bare", NULL);
    share_join(&s);
    share_topics(&s, "", NULL);
}

static void must_be_done(const char *what)
{
    if (s.answer.code != 'D') {
        fprintf(stderr, "%s: %c %s\n", what, s.answer.code, s.answer.error);
        exit(1);
    }
}

double bare_shared_put(const char *socket_path, size_t jobs, size_t batch, size_t payload)
{
    static struct share_job put[SHARE_MOST];
    static char record[4096];

    begin(socket_path);
    memset(record, 'x', 12 + payload);
    int64_t began = due__mono_ns();
    for (size_t at = 0; at < jobs; at += batch) {
        for (size_t i = 0; i < batch; i++) {
            put[i] = (struct share_job){ .score = (int64_t)(1 + at + i), .record = record };
            snprintf(put[i].id, sizeof put[i].id, "id%012zu", at + i);
        }
        share_put(&s, put, (int)batch);
        must_be_done("put");
    }
    double took = (double)(due__mono_ns() - began) / 1e9;
    share_end(&s);
    return took;
}

size_t bare_shared_work(const char *socket_path, size_t at_once)
{
    static struct share_outcome done[SHARE_MOST];
    static char ids[SHARE_MOST][SHARE_ID + 1];
    size_t ended = 0;
    int n = 0;

    begin(socket_path);
    do {
        share_work(&s, done, n, (struct share_claim){ (int)at_once, 0, 60000000, NULL });
        must_be_done("work");
        ended += (size_t)n;
        n = s.answer.count;
        for (int i = 0; i < n; i++) {
            memcpy(ids[i], s.answer.job[i].id, sizeof ids[i]);
            done[i] = (struct share_outcome){ 'a', 1, ids[i], s.answer.lease, 0, NULL };
        }
    } while (n > 0);
    share_end(&s);
    return ended;
}
