/* redis_fake.h - a server that says what a test tells it to say.
 *
 * A thread of its own accepts one connection after the other, on a UNIX socket in a fresh folder,
 * and calls @serve for each; what @serve leaves open is closed.  No signal reaches it.
 */
#ifndef REDIS_FAKE_H
#define REDIS_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FAKE_TEXT 512

struct fake;

/* @nth: of the connections, from 0. */
typedef void fake_serve(struct fake *fake, int fd, int nth);

struct fake {
    char dir[64];
    char path[96];
    char url[128];
    int listener;
    pthread_t thread;
    fake_serve *serve;
    void *ctx;
    atomic_int accepted;
    atomic_bool stop;
    char heard[4096]; /* the commands, one a line, read when the thread has ended */
};

void fake_start(struct fake *fake, fake_serve *serve, void *ctx);
/* The same, on a port of 127.0.0.1; its URL says "localhost". */
void fake_start_tcp(struct fake *fake, fake_serve *serve, void *ctx);
void fake_stop(struct fake *fake); /* when its clients are gone */

/* The next command, its words with spaces between; false: the client is gone. */
bool fake_hear(struct fake *fake, int fd, char text[FAKE_TEXT]);
/* Hear one command and answer @reply. */
bool fake_answer(struct fake *fake, int fd, const char *reply);
/* Answer a greeting of @n commands as a friendly server does. */
bool fake_greet(struct fake *fake, int fd, int n);
bool fake_say(int fd, const char *text);
bool fake_say_bytes(int fd, const void *bytes, size_t len);
/* Read and throw away until the client is gone. */
void fake_ignore(int fd);

#endif
