/* stream.c - which jobs there are: README.md of the benchmarks says it in formulas. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"

static int64_t clipped(double ns, int64_t spread_ns)
{
    return ns < (double)spread_ns ? (int64_t)ns : spread_ns;
}

int64_t cell_shape_delay(const struct cell *c, uint64_t number)
{
    uint64_t r = cell_random(c, number);
    int64_t spread = c->o.spread_ns;
    double u = ((double)(r >> 11) + 0.5) * 0x1p-53;
    uint64_t near = spread >= 10000 ? (uint64_t)spread / 10000 : 1;

    switch (c->o.shape) {
    case SHAPE_EXPONENTIAL:
        return clipped(-log(u) * (double)spread / 8, spread);
    case SHAPE_CLUSTERED:
        return (int64_t)((double)spread * (double)(r & 15) / 16) + (int64_t)((r >> 11) % near);
    case SHAPE_HEAVY:
        return clipped((double)spread / 10000 * (pow(u, -1 / 1.1) - 1), spread);
    case SHAPE_SAWTOOTH:
        return spread - spread / 1000 * (int64_t)(number % 1000);
    case SHAPE_EQUAL:
        return spread / 2;
    case SHAPE_DECADES:
        return clipped(pow(10, 9 * u) * (double)spread / 1e9, spread);
    case SHAPE_UNIFORM:
        break;
    }
    return (int64_t)((double)(r >> 11) * 0x1p-53 * (double)spread);
}

void cell_stream(struct cell *c, size_t count)
{
    enum cell_shape shape = c->o.shape;

    c->count = count;
    if (shape != SHAPE_EXPONENTIAL && shape != SHAPE_HEAVY && shape != SHAPE_DECADES)
        return;
    int64_t *delays = cell_alloc(count, sizeof *delays);
    for (size_t i = 0; i < count; i++)
        delays[i] = cell_shape_delay(c, i);
    c->delays = delays;
}

int64_t cell_mean_spread(enum cell_shape shape)
{
    switch (shape) {
    case SHAPE_EXPONENTIAL:
        return 8 * CELL_S;
    case SHAPE_HEAVY:
        return 1661 * CELL_S;
    case SHAPE_DECADES:
        return CELL_S * 207 / 10;
    default:
        return 2 * CELL_S;
    }
}

void cell_shuffle(struct cell *c, uint32_t *order, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)(cell_random(c, UINT64_MAX - i) % i);
        uint32_t swap = order[i - 1];

        order[i - 1] = order[k];
        order[k] = swap;
    }
}

void cell_payload(const struct cell *c, struct bench_job *job, unsigned char *bytes)
{
    size_t len = c->o.payload;
    size_t done = len < sizeof job->number ? len : sizeof job->number;

    memcpy(bytes, &job->number, done);
    for (; done < len; done *= 2) /* the number over and over, at the speed of a copy */
        memcpy(bytes + done, bytes, len - done < done ? len - done : done);
    job->data = bytes;
    job->len = (uint32_t)len;
}
