/* webhook_server.c - one request after another is read, looked at and answered. */
#include "webhook_server.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENT_MAX 16 /* requests without an answer; their connections stay open */

/* Is this the whole of a delivery of @text to @path? */
static int is_delivery(const char *request, const char *path, const char *text)
{
    const char *end = strstr(request, "\r\n\r\n");
    size_t len = strlen(path);

    return end != NULL && strcmp(end + 4, text) == 0 && strncmp(request, "POST ", 5) == 0 &&
           strncmp(request + 5, path, len) == 0 && request[5 + len] == ' ' &&
           strstr(request, "\r\nWebhook-Id: ") != NULL;
}

/* Reads until a subscriber's request is complete; NULL: that was none. */
static struct subscriber *receive(const struct server *s, int client)
{
    char request[2048] = "";
    size_t len = 0;
    ssize_t n;

    while ((n = recv(client, request + len, sizeof request - 1 - len, 0)) > 0) {
        len += (size_t)n;
        for (size_t i = 0; i < s->count; i++)
            if (is_delivery(request, s->subscribers[i].path, s->text))
                return &s->subscribers[i];
    }
    return NULL;
}

static void answer(int client, int status)
{
    char reply[128];
    int n = snprintf(reply, sizeof reply,
                     "HTTP/1.1 %d -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);

    (void)send(client, reply, (size_t)n, MSG_NOSIGNAL);
}

static void *serve(void *arg)
{
    struct server *s = arg;
    int silent[SILENT_MAX], silent_count = 0, client;

    while ((client = accept(s->listener, NULL, NULL)) >= 0) { /* until it is shut down */
        struct subscriber *to = receive(s, client);
        int status = to != NULL && to->requests < REQUESTS ? to->answers[to->requests] : 400;

        if (to != NULL)
            to->requests++;
        if (status == 0 && silent_count < SILENT_MAX) {
            silent[silent_count++] = client;
            continue;
        }
        if (status != 0)
            answer(client, status);
        close(client);
    }
    while (silent_count > 0)
        close(silent[--silent_count]);
    return NULL;
}

int server_start(struct server *s)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0)
        return -1;
    if (bind(s->listener, (struct sockaddr *)&address, size) == 0 && listen(s->listener, 8) == 0 &&
        getsockname(s->listener, (struct sockaddr *)&address, &size) == 0) {
        s->port = ntohs(address.sin_port);
        if (pthread_create(&s->thread, NULL, serve, s) == 0)
            return 0;
    }
    close(s->listener);
    return -1;
}

void server_stop(struct server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
}
