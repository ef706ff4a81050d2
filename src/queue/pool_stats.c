/* pool_stats.c - the pools of workers that a queue has or had, by name. */
#include "queue/pool_stats.h"

#include <string.h>

#include "queue/queue.h"

/* With the lock: the row of @name, or where it would be linked. */
static struct due__row **find(struct due__pool_stats *r, const char *name)
{
    struct due__row **at = &r->rows;

    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

struct due__row *due__row_new(struct due_queue *q, const char *name)
{
    struct due__row *row = due__alloc_new(&q->alloc, sizeof *row);

    if (row != NULL)
        memcpy(row->name, name, strlen(name) + 1);
    return row;
}

void due__row_free(struct due_queue *q, struct due__row *row)
{
    due__alloc_free(&q->alloc, row, sizeof *row);
}

void due__pool_stats_enter(struct due_queue *q, struct due__counted *pool, struct due__row *row)
{
    struct due__pool_stats *r = &q->pool_stats;

    due__lock_acquire(&r->lock);
    struct due__row **at = find(r, row->name);
    if (*at == NULL)
        *at = row;
    pool->row = *at;
    pool->next = pool->row->pools;
    pool->row->pools = pool;
    due__lock_release(&r->lock);
    if (pool->row != row)
        due__row_free(q, row);
}

/* Counters only: what is now ends with the pool. */
static void keep_counts(struct due_workers_stats *done, const struct due_workers_stats *s)
{
    done->handled += s->handled;
    done->acked += s->acked;
    done->retried += s->retried;
    done->buried += s->buried;
    done->lost += s->lost;
    done->unanswered += s->unanswered;
    done->extended += s->extended;
    done->given_back += s->given_back;
}

void due__pool_stats_leave(struct due_queue *q, struct due__counted *pool)
{
    struct due__pool_stats *r = &q->pool_stats;
    struct due_workers_stats s = { 0 };

    due__lock_acquire(&r->lock);
    struct due__counted **at = &pool->row->pools;
    while (*at != pool)
        at = &(*at)->next;
    *at = pool->next;
    pool->add_up(pool, &s);
    keep_counts(&pool->row->done, &s);
    due__lock_release(&r->lock);
}

void due__pool_stats_sum(struct due__pool_stats *r)
{
    for (struct due__row *row = r->rows; row != NULL; row = row->next) {
        row->sum = row->done;
        for (struct due__counted *pool = row->pools; pool != NULL; pool = pool->next)
            pool->add_up(pool, &row->sum);
    }
}

void due__pool_stats_init(struct due__pool_stats *r)
{
    due__lock_init(&r->lock);
}

void due__pool_stats_free(struct due_queue *q)
{
    struct due__row *row = q->pool_stats.rows;

    while (row != NULL) {
        struct due__row *next = row->next;

        due__row_free(q, row);
        row = next;
    }
    due__lock_destroy(&q->pool_stats.lock);
}
