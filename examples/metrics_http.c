/* metrics_http.c - the figures of a queue over HTTP, for Prometheus to fetch.
 *
 * With a port as its argument it serves http://127.0.0.1:PORT/metrics until it is killed.  Without
 * one it takes any port, fetches the page once, and prints some of its lines.
 */
#include <arpa/inet.h>
#include <due/metrics.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address = { .sin_family = AF_INET };

static void send_all(int to, const char *bytes, size_t n)
{
    ssize_t sent = 1;

    for (; n > 0 && sent > 0; bytes += sent, n -= (size_t)(sent > 0 ? sent : 0))
        sent = send(to, bytes, n, MSG_NOSIGNAL);
}

/* One request: whatever was asked for, this is the answer. */
static void answer(due_queue *q, int client)
{
    char request[4096];
    char head[256];
    int room = due_metrics_write(q, NULL, 0) + 4096; /* figures grow by digits */
    char *body = room >= 4096 ? malloc((size_t)room) : NULL;
    int len = body != NULL ? due_metrics_write(q, body, (size_t)room) : -1;
    bool whole = len >= 0 && len < room && recv(client, request, sizeof request, 0) > 0;

    snprintf(head, sizeof head,
             "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
             whole ? "200 OK" : "503 Service Unavailable", DUE_METRICS_TYPE, whole ? len : 0);
    send_all(client, head, strlen(head));
    if (whole)
        send_all(client, body, (size_t)len);
    free(body);
}

/* A socket that listens on this computer only; -1: it could not be had. */
static int listen_on(int port)
{
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 8) != 0 || getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        return -1;
    return listener;
}

/* Fetch the page, as Prometheus would, and print what does not depend on the machine. */
static void *fetch(void *page)
{
    static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int server = socket(AF_INET, SOCK_STREAM, 0);
    size_t size = 1 << 20;
    size_t len = 0;
    ssize_t n = -1;

    if (connect(server, (struct sockaddr *)&address, sizeof address) == 0) {
        send_all(server, ask, sizeof ask - 1);
        while ((n = recv(server, (char *)page + len, size - 1 - len, 0)) > 0)
            len += (size_t)n;
    }
    close(server);
    return NULL;
}

int main(int argc, char **argv)
{
    due_options options = { DUE_OPTIONS_INIT, .name = "orders", .metrics = 1 };
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(3600), .data = "tea", .len = 3 };
    static char page[1 << 20];
    pthread_t client;
    due_queue *q;

    int listener = listen_on(argc > 1 ? atoi(argv[1]) : 0);
    if (listener < 0 || due_open(&q, &options, NULL) != 0 || due_enqueue(q, &later, 0, NULL) != 0)
        return 1;
    if (argc <= 1 && pthread_create(&client, NULL, fetch, page) != 0)
        return 1;
    do {
        int accepted = accept(listener, NULL, NULL);

        if (accepted >= 0)
            answer(q, accepted);
        close(accepted);
    } while (argc > 1);
    pthread_join(client, NULL);
    for (char *line = strtok(page, "\r\n"); line != NULL; line = strtok(NULL, "\r\n")) {
        if (strncmp(line, "HTTP", 4) == 0 || strncmp(line, "Content-Type", 12) == 0 ||
            strncmp(line, "due_jobs{", 9) == 0 || strncmp(line, "due_jobs_enqueued", 17) == 0)
            puts(line);
    }
    if (due_close(q, DUE_CLOSE_DISCARD, DUE_S(1)) != 0)
        return 1;
    return due_free(q) == 0 ? 0 : 1;
}
