/* beanstalkd_wire.c - a connection to beanstalkd. */
#include "beanstalkd_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void wire_fail(const char *what)
{
    fprintf(stderr, "beanstalkd: %s\n", what);
    exit(1);
}

int wire_dial(const char *socket_path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(socket_path) >= sizeof to.sun_path)
        wire_fail("its socket cannot be had");
    memcpy(to.sun_path, socket_path, strlen(socket_path) + 1);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

void wire_open(struct wire *w, const char *socket_path, size_t room)
{
    w->fd = wire_dial(socket_path);
    w->out = malloc(room);
    w->out_len = w->at = w->end = 0;
    if (w->fd < 0 || w->out == NULL)
        wire_fail("no connection");
}

void wire_close(struct wire *w)
{
    close(w->fd);
    free(w->out);
}

void wire_send(struct wire *w)
{
    for (size_t sent = 0; sent < w->out_len;) {
        ssize_t n = send(w->fd, w->out + sent, w->out_len - sent, MSG_NOSIGNAL);

        if (n <= 0)
            wire_fail("it has gone");
        sent += (size_t)n;
    }
    w->out_len = 0;
}

static char wire_byte(struct wire *w)
{
    if (w->at == w->end) {
        ssize_t n = recv(w->fd, w->in, sizeof w->in, 0);

        if (n <= 0)
            wire_fail("it has gone");
        w->at = 0;
        w->end = (size_t)n;
    }
    return w->in[w->at++];
}

void wire_bytes(struct wire *w, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((char *)bytes)[i] = wire_byte(w);
}

void wire_line(struct wire *w, char line[WIRE_LINE])
{
    size_t len = 0;

    for (char byte = wire_byte(w); byte != '\n'; byte = wire_byte(w))
        if (byte != '\r' && len < WIRE_LINE - 1)
            line[len++] = byte;
    line[len] = '\0';
}

void wire_expect(struct wire *w, char line[WIRE_LINE], const char *begin)
{
    wire_line(w, line);
    if (strncmp(line, begin, strlen(begin)) != 0)
        wire_fail(line);
}
