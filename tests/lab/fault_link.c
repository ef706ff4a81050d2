/* fault_link.c - one connection of the proxy.
 *
 * It holds four buffers: what came from either side, and what goes to either side.  A command or a
 * reply moves from one to the other when it is whole, so that a fault can be placed at its edges or
 * in its middle.  A connection that is held is not looked at at all.
 */
#define _GNU_SOURCE
#include "lab/fault_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t fault_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void *fault_need(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "fault proxy: no memory\n");
        abort();
    }
    return memory;
}

/* ---- One connection ends ---- */

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void fault_link_cut(struct fault_link *l)
{
    shut(&l->client);
    shut(&l->server);
}

/* What the client has sent is read first: otherwise it would see a reset, not an end. */
static void close_client(struct fault_link *l)
{
    char bytes[4096];

    if (l->client < 0)
        return;
    shutdown(l->client, SHUT_RDWR);
    while (recv(l->client, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    shut(&l->client);
    l->client_end = true;
    fault_bytes_skip(&l->from_client, fault_bytes_n(&l->from_client));
    l->raw_command = 0;
    l->in_half = l->counted = false;
    l->cell = -1;
}

void fault_link_free(struct fault_link *l)
{
    fault_link_cut(l);
    fault_bytes_free(&l->from_client);
    fault_bytes_free(&l->to_server);
    fault_bytes_free(&l->from_server);
    fault_bytes_free(&l->to_client);
    free(l->waiting);
    free(l);
}

/* ---- The plan ---- */

int fault_cell_for(struct fault_proxy *p, const char *name, bool accept)
{
    int found = -1;

    for (size_t i = 0; i < p->n_cells; i++) {
        struct fault_planned *c = &p->cells[i];

        if ((c->fault.where == FAULT_ACCEPT) != accept)
            continue;
        if (c->fault.name != NULL && strcmp(c->name, name) != 0)
            continue;
        if (++c->seen == c->fault.command && !c->used && found < 0) {
            c->used = true;
            found = (int)i;
        }
    }
    return found;
}

static void count_command(struct fault_proxy *p, struct fault_link *l)
{
    if (p->commands == p->names_room) {
        p->names_room = 2 * p->names_room + 64;
        p->names = fault_need(realloc(p->names, p->names_room * sizeof *p->names));
    }
    char *name = p->names[p->commands++];
    fault_command_name(&l->from_client, name, FAULT_NAME);
    l->cell = fault_cell_for(p, name, false);
    l->counted = true;
}

bool fault_strike(struct fault_proxy *p, struct fault_link *l, int cell, size_t *slow, size_t n)
{
    const struct fault_planned *c = &p->cells[cell];

    p->struck++;
    pthread_cond_broadcast(&p->changed);
    switch (c->fault.what) {
    case FAULT_RESET:
        fault_link_cut(l);
        return false;
    case FAULT_CLOSE:
        close_client(l);
        return true;
    case FAULT_HALF:
        shutdown(l->client, SHUT_WR);
        l->half = true;
        return true;
    case FAULT_STALL:
        l->held_until = INT64_MAX;
        return false;
    case FAULT_DELAY:
        l->held_until = fault_now_ns() + (int64_t)c->fault.delay_ms * 1000000;
        return false;
    case FAULT_TRICKLE:
        *slow = n;
        l->slow_ns = (int64_t)c->fault.delay_ms * 1000000;
        return true;
    case FAULT_REPLACE:
    case FAULT_REFUSE:
        fault_bytes_add(&l->to_client, c->text, strlen(c->text));
        fault_bytes_add(&l->to_client, "\r\n", 2);
        return true;
    default:
        return true;
    }
}

/* ---- From the client to the server ---- */

static void push_waiting(struct fault_link *l, int cell)
{
    if (l->n_waiting == l->waiting_room) {
        l->waiting_room = 2 * l->waiting_room + 16;
        l->waiting = fault_need(realloc(l->waiting, l->waiting_room * sizeof *l->waiting));
    }
    l->waiting[l->n_waiting++] = (struct fault_waiting){ .cell = cell };
}

static bool all_answered(const struct fault_link *l)
{
    return l->n_waiting == 0 && fault_bytes_n(&l->to_server) == 0 &&
           fault_bytes_n(&l->to_client) == 0;
}

/* The server has another command in place of the next one, of @n bytes: none that it knows, which
 * spoils a transaction; or one that ends it.  The reply is the planned one. */
static void refuse(struct fault_link *l, size_t n)
{
    static const char spoils[] = "*1\r\n$6\r\nREFUSE\r\n";
    static const char ends[] = "*1\r\n$7\r\nDISCARD\r\n";
    char name[FAULT_NAME];

    fault_command_name(&l->from_client, name, sizeof name);
    bool exec = strcmp(name, "EXEC") == 0;
    fault_bytes_skip(&l->from_client, n);
    fault_bytes_add(&l->to_server, exec ? ends : spoils, (exec ? sizeof ends : sizeof spoils) - 1);
    push_waiting(l, l->cell);
    l->counted = false;
    l->cell = -1;
}

/* A command for which something is planned before the server has all of it.  False: not yet. */
static bool strike_command(struct fault_proxy *p, struct fault_link *l, size_t n)
{
    const struct fault_cell *fault = &p->cells[l->cell].fault;
    int cell = l->cell;

    if (!l->in_half && !all_answered(l))
        return false;
    if (fault->what == FAULT_REFUSE) {
        refuse(l, n);
        return true;
    }
    if (fault->where == FAULT_MID_COMMAND && !l->in_half) {
        fault_bytes_move(&l->from_client, &l->to_server, n / 2);
        l->raw_command = n - n / 2;
        l->in_half = true;
    }
    if (fault_bytes_n(&l->to_server) > 0)
        return false;
    l->cell = -1;
    if (l->in_half)
        n = l->raw_command;
    bool on = fault_strike(p, l, cell, &l->slow_command, n);
    if (fault->what == FAULT_REPLACE && !l->in_half) {
        fault_bytes_skip(&l->from_client, n);
        l->counted = false;
    }
    return on;
}

/* The next command, or a part of it.  False: nothing to be done now.  What comes behind a command
 * with a planned reply waits for that, so that it is known what the server has had. */
static bool forward_command(struct fault_proxy *p, struct fault_link *l)
{
    long n = (long)l->raw_command;

    if (l->n_waiting > 0 && l->waiting[l->n_waiting - 1].cell >= 0)
        return false;
    if (n == 0)
        n = fault_command_length(&l->from_client);
    if (n == 0)
        return false;
    if (n < 0)
        n = (long)fault_bytes_n(&l->from_client);
    if (!l->counted)
        count_command(p, l);
    int cell = l->cell;
    if (cell >= 0 && p->cells[cell].fault.where <= FAULT_MID_COMMAND)
        return strike_command(p, l, (size_t)n);
    fault_bytes_move(&l->from_client, &l->to_server, (size_t)n);
    push_waiting(l, cell);
    l->counted = l->in_half = false;
    l->raw_command = 0;
    l->cell = -1;
    return true;
}

/* ---- From the server to the client ---- */

static bool strike_reply(struct fault_proxy *p, struct fault_link *l, int cell, size_t n)
{
    const struct fault_cell *fault = &p->cells[cell].fault;

    if (fault_bytes_n(&l->to_client) > 0)
        return false;
    if (fault->where == FAULT_MID_REPLY && !l->in_half_reply) {
        fault_bytes_move(&l->from_server, &l->to_client, n / 2);
        l->raw_reply = n - n / 2;
        l->in_half_reply = true;
        return true;
    }
    l->waiting[0].cell = -1;
    bool instead = fault->what == FAULT_REPLACE || fault->what == FAULT_REFUSE;
    if (instead && !l->in_half_reply) {
        fault_bytes_skip(&l->from_server, n);
        memmove(l->waiting, l->waiting + 1, --l->n_waiting * sizeof *l->waiting);
    }
    return fault_strike(p, l, cell, &l->slow_reply, n);
}

static bool forward_reply(struct fault_proxy *p, struct fault_link *l)
{
    long n = (long)l->raw_reply;

    if (n == 0)
        n = fault_reply_length(&l->from_server);
    if (n == 0)
        return false;
    if (n < 0)
        n = (long)fault_bytes_n(&l->from_server);
    int cell = l->n_waiting > 0 ? l->waiting[0].cell : -1;
    if (cell >= 0)
        return strike_reply(p, l, cell, (size_t)n);
    fault_bytes_move(&l->from_server, &l->to_client, (size_t)n);
    if (l->n_waiting > 0)
        memmove(l->waiting, l->waiting + 1, --l->n_waiting * sizeof *l->waiting);
    l->in_half_reply = false;
    l->raw_reply = 0;
    return true;
}

/* ---- Bytes in and out ---- */

/* False: nothing came.  @end is set when nothing more will. */
static bool receive(int fd, struct fault_bytes *to, bool *end)
{
    static _Thread_local char bytes[1 << 16];
    ssize_t n;

    if (fd < 0 || *end)
        return false;
    do
        n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        fault_bytes_add(to, bytes, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        *end = true;
    return n > 0 || *end;
}

/* False: nothing went.  What goes one byte at a time has its time. */
static bool deliver(struct fault_link *l, int fd, struct fault_bytes *from, size_t *slow,
                    bool *gone)
{
    size_t n = fault_bytes_n(from);
    ssize_t sent;

    if (fd < 0 || n == 0)
        return false;
    if (*slow > 0) {
        if (fault_now_ns() < l->next_slow_ns)
            return false;
        l->next_slow_ns = fault_now_ns() + l->slow_ns;
        n = 1;
    }
    do
        sent = send(fd, from->data + from->begin, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        *gone = errno != EAGAIN;
    if (sent <= 0)
        return false;
    fault_bytes_skip(from, (size_t)sent);
    *slow -= *slow > 0;
    return true;
}

/* What an end of either side, or of everything, brings about. */
static void end_of_link(struct fault_link *l, bool client_gone, bool server_gone)
{
    if (client_gone)
        close_client(l);
    if (l->client < 0)
        fault_bytes_skip(&l->to_client, fault_bytes_n(&l->to_client));
    if (l->client_end && !l->told_end && l->server >= 0 && fault_bytes_n(&l->to_server) == 0 &&
        fault_command_length(&l->from_client) <= 0 && (l->client >= 0 || l->n_waiting == 0)) {
        shutdown(l->server, SHUT_WR);
        l->told_end = true;
    }
    if (server_gone || (l->server_end && fault_bytes_n(&l->to_client) == 0))
        fault_link_cut(l);
}

void fault_link_serve(struct fault_proxy *p, struct fault_link *l)
{
    bool client_gone = false;
    bool server_gone = false;
    bool more = true;

    if (l->held_until != 0 && fault_now_ns() < l->held_until)
        return;
    l->held_until = 0;
    while (more && l->held_until == 0 && l->server >= 0) {
        more = receive(l->client, &l->from_client, &l->client_end);
        if (receive(l->server, &l->from_server, &l->server_end)) {
            more = true;
            if (p->lag_ns > 0) {
                l->held_until = fault_now_ns() + p->lag_ns;
                break;
            }
        }
        more |= forward_command(p, l);
        if (l->held_until == 0 && l->server >= 0)
            more |= forward_reply(p, l);
        more |= deliver(l, l->server, &l->to_server, &l->slow_command, &server_gone);
        if (l->half || l->client < 0)
            fault_bytes_skip(&l->to_client, fault_bytes_n(&l->to_client));
        more |= deliver(l, l->client, &l->to_client, &l->slow_reply, &client_gone);
    }
    if (l->held_until == 0)
        end_of_link(l, client_gone, server_gone);
}
