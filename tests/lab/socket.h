/* socket.h - one who asks at a control socket, for tests: a line, perhaps payloads behind it, and
 * the whole answer as text.
 */
#ifndef LAB_SOCKET_H
#define LAB_SOCKET_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A descriptor, or -1 and errno. */
static inline int socket_connect(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* As much as the other side takes. */
static inline void socket_say(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        at += n;
        len -= (size_t)n;
    }
}

/* What comes until the connection ends; free() it. */
static inline char *socket_hear(int fd)
{
    size_t len = 0, room = 4096;
    char *text = malloc(room);

    for (;;) {
        if (len + 1 == room)
            text = realloc(text, room *= 2);
        ssize_t n = recv(fd, text + len, room - len - 1, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    text[len] = '\0';
    close(fd);
    return text;
}

/* The answer, "" if there is none; free() it.  @line gets its line feed here. */
static inline char *socket_ask(const char *path, const char *line, const void *body, size_t len)
{
    int fd = socket_connect(path);

    if (fd < 0)
        return calloc(1, 1);
    socket_say(fd, line, strlen(line));
    socket_say(fd, "\n", 1);
    socket_say(fd, body, len);
    return socket_hear(fd);
}

#endif
