/* client_bytes.c - what jobs carry: a number, and bytes that follow from it; headers, likewise. */
#include <string.h>

#include "client.h"
#include "machine.h"

#define LARGE_BYTES CLIENT_BYTES

/* ---- Payloads ---- */

static size_t payload(uint64_t number, size_t len, unsigned char *bytes)
{
    memcpy(bytes, &number, 8);
    for (size_t i = 8; i < len; i++)
        bytes[i] = (unsigned char)(number * 31 + i);
    return len;
}

static size_t usual_bytes(uint64_t number)
{
    return number % 16 == 0 ? 3000 : 8 + number * 37 % 90;
}

/* One in four of those that may be large is. */
static bool large(uint64_t number)
{
    return number % 4 == 1;
}

size_t client_length(const struct plan *p, uint64_t number)
{
    return plan_has(p, KIND_LARGE) && large(number) ? LARGE_BYTES : usual_bytes(number);
}

unsigned char *client_payload(const struct plan *p, uint64_t number, size_t *len)
{
    unsigned char *bytes;

    *len = client_length(p, number);
    bytes = memory_new(*len);
    payload(number, *len, bytes);
    return bytes;
}

uint64_t client_number(const due_job *job)
{
    static unsigned char bytes[LARGE_BYTES];
    uint64_t number = 0;

    if (job->ptr != NULL)
        return (uint64_t)(uintptr_t)job->ptr;
    if (job->len < 8)
        return 0;
    memcpy(&number, job->data, 8);
    if (job->len != usual_bytes(number) && (job->len != LARGE_BYTES || !large(number)))
        return 0;
    if (memcmp(bytes, job->data, payload(number, job->len, bytes)) != 0)
        return 0;
    return number;
}

/* ---- Headers ---- */

size_t client_headers(uint64_t number, unsigned char bytes[CLIENT_HEADERS])
{
    size_t len = 8 + number % 41;

    memcpy(bytes, &number, 8);
    for (size_t i = 8; i < len; i++)
        bytes[i] = (unsigned char)(number * 13 + i);
    return len;
}

uint64_t client_headers_number(const due_job *job)
{
    unsigned char bytes[CLIENT_HEADERS];
    uint64_t number = 0;

    if (job->headers_len == 0)
        return 0;
    if (job->headers_len >= 8)
        memcpy(&number, job->headers, 8);
    if (number == 0 || client_headers(number, bytes) != job->headers_len ||
        memcmp(bytes, job->headers, job->headers_len) != 0)
        machine_fail("a job has headers that make no sense");
    return number;
}
