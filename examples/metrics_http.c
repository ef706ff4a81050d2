/* metrics_http.c - the figures of a queue over HTTP, for Prometheus to fetch.
 *
 * `metrics_http PORT` serves http://127.0.0.1:PORT/metrics until it is killed; 0 is any free port.
 * The loop would be a thread of the program whose queue it is.
 */
#include <arpa/inet.h>
#include <due/metrics.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Whatever is asked for, the figures are the answer; for who says nothing there is none. */
static void answer(due_queue *q, int client)
{
    char request[4096];
    int room = due_metrics_write(q, NULL, 0) + 4096; /* figures grow by digits */
    char *body = room >= 4096 ? malloc((size_t)room) : NULL;
    int len = body != NULL ? due_metrics_write(q, body, (size_t)room) : -1;

    if (len >= 0 && len < room && recv(client, request, sizeof request, 0) > 0)
        dprintf(client, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
                DUE_METRICS_TYPE, len, body);
    free(body);
    shutdown(client, SHUT_WR);
    while (recv(client, request, sizeof request, 0) > 0) /* unread bytes would cut it short */
        continue;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval patience = { .tv_sec = 2 }; /* with slow clients, one of which is served */
    socklen_t size = sizeof at;
    due_options options = { DUE_OPTIONS_INIT, .name = "orders", .metrics = 1 };
    due_spec later = { DUE_SPEC_INIT, .delay_ns = DUE_S(3600), .data = "tea", .len = 3 };
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    due_queue *q;

    at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
    if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0 ||
        due_open(&q, &options, NULL) != 0 || due_enqueue(q, &later, 0, NULL) != 0)
        return 1;
    printf("http://127.0.0.1:%d/metrics\n", ntohs(at.sin_port));
    fflush(stdout);
    signal(SIGPIPE, SIG_IGN); /* a client that leaves early */
    for (;;) {
        int client = accept(listener, NULL, NULL);

        if (client < 0)
            sleep(1); /* no descriptor is free */
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        answer(q, client);
        close(client);
    }
}
