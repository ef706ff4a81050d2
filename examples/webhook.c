/* webhook.c - events are posted to the URLs of those who asked for them, by a pool of workers.
 *
 * A job's payload is what is posted, its headers are the URL.  What the receiver answers decides:
 * 2xx and it is done; 5xx, or no answer in time, and it is tried again, as the ladder says; any
 * other and it is dead, since the same request would only get the same answer.  Each delivery bears
 * its job's id, by which the receiver knows it if it comes twice: a receiver may have taken it, and
 * its answer may have been lost.
 *
 * Takes libcurl, 7.85 or later.  Where the URLs are other people's, more is to be done: they must
 * not point into your own network.
 */
#include <curl/curl.h>
#include <due/due.h>
#include <due/metrics.h>
#include <due/workers.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "webhook_server.h"

#define TIMEOUT_MS 3000L /* for a delivery; shorter than the lease of a job */

/* ---- Deliveries ---- */

static size_t ignore(char *bytes, size_t size, size_t n, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * n;
}

/* Post it: the status of the answer, or 0 if none came in time. */
static long post(CURL *curl, const due_job *job)
{
    char url[DUE_HEADERS_MAX + 1], text[DUE_ID_TEXT], id[64];
    long status = 0;

    snprintf(url, sizeof url, "%.*s", (int)job->headers_len, (const char *)job->headers);
    snprintf(id, sizeof id, "Webhook-Id: %s", due_id_format(job->id, text));
    struct curl_slist second = { id, NULL };
    struct curl_slist headers = { (char[]){ "Content-Type: application/json" }, &second };

    if (curl_easy_setopt(curl, CURLOPT_URL, url) != CURLE_OK ||
        curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK) /* no file: */
        return 0;
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, &headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)job->len);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, job->data != NULL ? job->data : "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L); /* there are other threads */
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* The handler.  A busy program would keep a CURL for each thread, and so its connections. */
static void deliver(void *ctx, const due_job *job, due_answer *answer)
{
    CURL *curl = curl_easy_init();
    char why[DUE_ANSWER_WHY];

    (void)ctx;
    if (curl == NULL)
        return; /* it comes again, as without any answer */
    long status = post(curl, job);
    curl_easy_cleanup(curl);

    snprintf(why, sizeof why, "answered %ld", status);
    *answer = due_answer_bury(why);
    if (status >= 200 && status < 300)
        *answer = due_answer_ack();
    if (status == 0 || status >= 500)
        *answer = due_answer_nack(DUE_DELAY_POLICY);
}

static int notify(due_queue *q, const char *url, const char *text, due_id *id)
{
    due_extra to = { DUE_EXTRA_INIT, .headers = url, .headers_len = strlen(url) };
    due_spec spec = { DUE_SPEC_INIT, .data = text, .len = strlen(text), .more = &to };

    return due_enqueue(q, &spec, 0, id);
}

/* ---- The program ---- */

static struct subscriber subscribers[] = {
    { .path = "/orders", .answers = { 204 } },
    { .path = "/busy", .answers = { 503, 503, 200 } },
    { .path = "/silent", .answers = { 0, 200 } },
    { .path = "/gone", .answers = { 404 } },
    { .path = "/broken", .answers = { 500, 500, 500, 500, 500 } },
};

#define SUBSCRIBERS (sizeof subscribers / sizeof *subscribers)

/* Told of each step of each job: *@ctx is posted when one has come to its end. */
static void on_event(void *ctx, const due_event *event)
{
    if (event->kind == DUE_EVENT_ACKED || event->kind == DUE_EVENT_DEAD)
        sem_post(ctx);
}

static void show(due_queue *q, const struct subscriber *s, due_id id)
{
    const char *outcome = "delivered";
    uint64_t cursor = 0;
    due_dead dead;

    while (due_list_dead(q, &cursor, &dead, 1) == 1) {
        if (due_id_equal(dead.id, id)) {
            outcome = dead.reason[0] != '\0' ? dead.reason : "tried too often";
            break;
        }
    }
    printf("%-8s requests: %d, %s\n", s->path, s->requests, outcome);
}

static int run(due_queue *q, sem_t *ended)
{
    struct server server = { subscribers, SUBSCRIBERS, "{\"order\":17,\"paid\":true}", -1, 0, 0 };
    due_id ids[SUBSCRIBERS];
    due_workers *workers;
    char url[64];

    if (server_start(&server) != 0 ||
        due_workers_start(&workers, q, NULL, 0, 4, deliver, NULL, NULL) != 0)
        return 1;
    for (size_t i = 0; i < SUBSCRIBERS; i++) {
        snprintf(url, sizeof url, "http://127.0.0.1:%d%s", server.port, subscribers[i].path);
        if (notify(q, url, server.text, &ids[i]) != 0)
            return 1;
    }
    for (size_t i = 0; i < SUBSCRIBERS; i++)
        while (sem_wait(ended) != 0)
            ;
    if (due_workers_stop(workers, DUE_S(10)) != 0 || due_workers_free(workers) != 0)
        return 1;
    server_stop(&server);
    for (size_t i = 0; i < SUBSCRIBERS; i++)
        show(q, &subscribers[i], ids[i]);
    return 0;
}

int main(void)
{
    sem_t ended;
    due_options options = { DUE_OPTIONS_INIT,
                            .retry = { .kind = DUE_RETRY_LADDER,
                                       .rungs = 4,
                                       .rung_ns = { DUE_MS(50), DUE_MS(100), DUE_MS(200),
                                                    DUE_MS(400) } },
                            .on_event = on_event, .ctx = &ended };
    due_queue *q;

    setenv("no_proxy", "127.0.0.1", 1); /* our own server is reached directly */
    if (sem_init(&ended, 0, 0) != 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        due_open(&q, &options, NULL) != 0 || run(q, &ended) != 0 ||
        due_close(q, DUE_CLOSE_DISCARD, DUE_S(10)) != 0 || due_free(q) != 0)
        return 1;
    curl_global_cleanup();
    return sem_destroy(&ended);
}
