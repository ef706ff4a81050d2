/* fault_proxy.c - the thread that serves the connections, and what tests ask of it. */
#define _GNU_SOURCE
#include "lab/fault_proxy.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lab/fault_link.h"

/* ---- The thread ---- */

static void accept_one(struct fault_proxy *p)
{
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (client < 0 || server < 0 || p->n_links == FAULT_LINKS ||
        connect(server, (const struct sockaddr *)&p->server, sizeof p->server) != 0) {
        if (client >= 0)
            close(client);
        if (server >= 0)
            close(server);
        return;
    }
    struct fault_link *l = fault_need(calloc(1, sizeof *l));
    l->client = client;
    l->server = server;
    l->cell = -1;
    p->links[p->n_links++] = l;
    p->connections++;
    int cell = fault_cell_for(p, "", true);
    if (cell >= 0)
        (void)fault_strike(p, l, cell, &l->slow_reply, 0);
}

static short events_of(const struct fault_bytes *out, size_t slow, bool end)
{
    int events = end ? 0 : POLLIN;

    if (fault_bytes_n(out) > 0 && slow == 0)
        events |= POLLOUT;
    return (short)events;
}

static bool waits_for_slow(const struct fault_link *l)
{
    return (l->slow_command > 0 && fault_bytes_n(&l->to_server) > 0) ||
           (l->slow_reply > 0 && fault_bytes_n(&l->to_client) > 0);
}

/* How long until something happens by itself, ms; -1: nothing does. */
static int poll_ms(const struct fault_proxy *p)
{
    int64_t first = INT64_MAX;

    for (size_t i = 0; i < p->n_links; i++) {
        const struct fault_link *l = p->links[i];

        if (l->held_until != 0 && l->held_until < first)
            first = l->held_until;
        if (l->held_until == 0 && waits_for_slow(l) && l->next_slow_ns < first)
            first = l->next_slow_ns;
    }
    if (first == INT64_MAX)
        return -1;
    int64_t left = first - fault_now_ns();
    return left <= 0 ? 0 : (int)(left / 1000000) + 1;
}

/* A side that has ended, or is held, is not looked at: it would wake the thread for ever. */
static size_t gather_fds(const struct fault_proxy *p, struct pollfd *fds)
{
    size_t n = 0;

    fds[n++] = (struct pollfd){ .fd = p->bell, .events = POLLIN };
    fds[n++] = (struct pollfd){ .fd = p->listener, .events = POLLIN };
    for (size_t i = 0; i < p->n_links; i++) {
        const struct fault_link *l = p->links[i];
        short client = events_of(&l->to_client, l->slow_reply, l->client_end);
        short server = events_of(&l->to_server, l->slow_command, l->server_end);

        if (l->held_until == 0 && l->client >= 0 && client != 0)
            fds[n++] = (struct pollfd){ .fd = l->client, .events = client };
        if (l->held_until == 0 && l->server >= 0 && server != 0)
            fds[n++] = (struct pollfd){ .fd = l->server, .events = server };
    }
    return n;
}

static void serve_links(struct fault_proxy *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->n_links; i++) {
        fault_link_serve(p, p->links[i]);
        if (p->links[i]->server < 0)
            fault_link_free(p->links[i]);
        else
            p->links[kept++] = p->links[i];
    }
    p->n_links = kept;
    p->rounds++;
    pthread_cond_broadcast(&p->changed);
}

static void *run(void *arg)
{
    struct fault_proxy *p = arg;
    struct pollfd fds[2 + 2 * FAULT_LINKS];
    uint64_t rings;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        size_t n = gather_fds(p, fds);
        int ms = poll_ms(p);

        pthread_mutex_unlock(&p->lock);
        int ready = poll(fds, n, ms);
        pthread_mutex_lock(&p->lock);
        if (ready > 0 && fds[0].revents != 0 && read(p->bell, &rings, sizeof rings) < 0)
            continue;
        if (ready > 0 && fds[1].revents != 0)
            accept_one(p);
        serve_links(p);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- For tests ---- */

static void ring(struct fault_proxy *p)
{
    uint64_t one = 1;

    if (write(p->bell, &one, sizeof one) < 0)
        perror("fault proxy");
}

static bool set_address(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address->sun_path)
        return false;
    strcpy(address->sun_path, path);
    return true;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || !set_address(&address, path))
        goto failed;
    unlink(path);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 64) == 0)
        return fd;
failed:
    fprintf(stderr, "fault proxy: %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

struct fault_proxy *fault_proxy_start(const char *path, const char *server)
{
    struct fault_proxy *p = fault_need(calloc(1, sizeof *p));
    pthread_condattr_t monotonic;

    p->listener = listen_at(path);
    p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (p->listener < 0 || p->bell < 0 || !set_address(&p->server, server)) {
        free(p);
        return NULL;
    }
    snprintf(p->path, sizeof p->path, "%s", path);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&p->thread, NULL, run, p) != 0)
        abort();
    return p;
}

void fault_proxy_stop(struct fault_proxy *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    ring(p);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    for (size_t i = 0; i < p->n_links; i++)
        fault_link_free(p->links[i]);
    close(p->listener);
    close(p->bell);
    unlink(p->path);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p->names);
    free(p);
}

static void go_on(struct fault_proxy *p)
{
    for (size_t i = 0; i < p->n_links; i++)
        p->links[i]->held_until = 0;
    ring(p);
}

static void forget_cells(struct fault_link *l)
{
    l->cell = -1;
    for (size_t i = 0; i < l->n_waiting; i++)
        l->waiting[i].cell = -1;
}

void fault_proxy_plan(struct fault_proxy *p, const struct fault_cell *cells, size_t n)
{
    pthread_mutex_lock(&p->lock);
    p->n_cells = n < FAULT_CELLS ? n : FAULT_CELLS;
    p->struck = 0;
    p->commands = p->connections = 0;
    for (size_t i = 0; i < p->n_cells; i++) {
        struct fault_planned *c = &p->cells[i];

        *c = (struct fault_planned){ .fault = cells[i] };
        if (cells[i].name != NULL)
            snprintf(c->name, sizeof c->name, "%s", cells[i].name);
        if (cells[i].text != NULL)
            snprintf(c->text, sizeof c->text, "%s", cells[i].text);
    }
    for (size_t i = 0; i < p->n_links; i++)
        forget_cells(p->links[i]);
    go_on(p);
    pthread_mutex_unlock(&p->lock);
}

void fault_proxy_go_on(struct fault_proxy *p)
{
    pthread_mutex_lock(&p->lock);
    go_on(p);
    pthread_mutex_unlock(&p->lock);
}

void fault_proxy_lag(struct fault_proxy *p, unsigned ms)
{
    pthread_mutex_lock(&p->lock);
    p->lag_ns = (int64_t)ms * 1000000;
    pthread_mutex_unlock(&p->lock);
}

void fault_proxy_cut(struct fault_proxy *p)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n_links; i++)
        fault_link_cut(p->links[i]);
    go_on(p);
    pthread_mutex_unlock(&p->lock);
}

bool fault_proxy_move(struct fault_proxy *p, const char *server)
{
    pthread_mutex_lock(&p->lock);
    bool moved = set_address(&p->server, server);
    pthread_mutex_unlock(&p->lock);
    return moved;
}

uint64_t fault_proxy_commands(struct fault_proxy *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t n = p->commands;
    pthread_mutex_unlock(&p->lock);
    return n;
}

uint64_t fault_proxy_connections(struct fault_proxy *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t n = p->connections;
    pthread_mutex_unlock(&p->lock);
    return n;
}

unsigned fault_proxy_struck(struct fault_proxy *p)
{
    pthread_mutex_lock(&p->lock);
    unsigned n = p->struck;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static struct timespec after_ms(unsigned ms)
{
    int64_t end_ns = fault_now_ns() + (int64_t)ms * 1000000;

    return (struct timespec){ .tv_sec = (time_t)(end_ns / 1000000000),
                              .tv_nsec = (long)(end_ns % 1000000000) };
}

bool fault_proxy_wait(struct fault_proxy *p, unsigned struck, unsigned ms)
{
    struct timespec end = after_ms(ms);
    int rc = 0;

    pthread_mutex_lock(&p->lock);
    while (p->struck < struck && rc == 0)
        rc = pthread_cond_timedwait(&p->changed, &p->lock, &end);
    bool enough = p->struck >= struck;
    pthread_mutex_unlock(&p->lock);
    return enough;
}

static bool is_settled(const struct fault_proxy *p)
{
    for (size_t i = 0; i < p->n_links; i++)
        if (p->links[i]->client < 0 || p->links[i]->client_end)
            return false;
    return true;
}

bool fault_proxy_settle(struct fault_proxy *p, unsigned ms)
{
    struct timespec end = after_ms(ms);
    int rc = 0;

    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n_links; i++)
        p->links[i]->slow_command = p->links[i]->slow_reply = 0;
    go_on(p);
    uint64_t round = p->rounds + 1; /* whose beginning may have been before */
    while ((p->rounds <= round || !is_settled(p)) && rc == 0) {
        if (p->rounds <= round)
            ring(p);
        rc = pthread_cond_timedwait(&p->changed, &p->lock, &end);
    }
    bool settled = is_settled(p);
    pthread_mutex_unlock(&p->lock);
    return settled;
}

const char *fault_proxy_name(struct fault_proxy *p, uint64_t command, char name[24])
{
    name[0] = '\0';
    pthread_mutex_lock(&p->lock);
    if (command > 0 && command <= p->commands)
        memcpy(name, p->names[command - 1], FAULT_NAME);
    pthread_mutex_unlock(&p->lock);
    return name;
}
