/* moving_loops.c - timers of a loop of libuv and of one of libevent, which docs/moving/loops.md
 * shows beside those of libdue: a connection that leaves is not said to be silent.
 */
#include <event2/event.h>
#include <stdio.h>
#include <uv.h>

/* ---- libuv ---------------------------------------------------------------------------------- */

struct uv_connection {
    const char *name;
    uv_timer_t timer;
};

static void on_silent_uv(uv_timer_t *timer)
{
    printf("libuv: %s: silent for too long\n", ((struct uv_connection *)timer->data)->name);
}

static void start_uv(struct uv_connection *c)
{
    uv_timer_start(&c->timer, on_silent_uv, 30000, 0); /* and again, whenever it has spoken */
}

static void has_left_uv(struct uv_connection *c)
{
    uv_timer_stop(&c->timer);
}

static int by_libuv(uv_loop_t *loop)
{
    struct uv_connection c = { .name = "a" };

    if (uv_timer_init(loop, &c.timer) != 0)
        return 1;
    c.timer.data = &c;
    start_uv(&c);
    start_uv(&c);
    printf("libuv: %s\n", uv_is_active((uv_handle_t *)&c.timer) ? "waits" : "does not wait");
    has_left_uv(&c);
    printf("libuv: %s\n", uv_is_active((uv_handle_t *)&c.timer) ? "waits" : "does not wait");
    uv_close((uv_handle_t *)&c.timer, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop);
}

/* ---- libevent ------------------------------------------------------------------------------- */

struct event_connection {
    const char *name;
    struct event *timer;
};

static void on_silent_event(evutil_socket_t fd, short what, void *connection)
{
    struct event_connection *c = connection;

    (void)fd;
    (void)what;
    printf("libevent: %s: silent for too long\n", c->name);
}

static void start_event(struct event_connection *c)
{
    evtimer_add(c->timer, &(struct timeval){ .tv_sec = 30 }); /* and again */
}

static void has_left_event(struct event_connection *c)
{
    evtimer_del(c->timer);
}

static int by_libevent(struct event_base *base)
{
    struct event_connection c = { .name = "b" };

    c.timer = evtimer_new(base, on_silent_event, &c);
    if (c.timer == NULL)
        return 1;
    start_event(&c);
    start_event(&c);
    printf("libevent: %s\n", evtimer_pending(c.timer, NULL) ? "waits" : "does not wait");
    has_left_event(&c);
    printf("libevent: %s\n", evtimer_pending(c.timer, NULL) ? "waits" : "does not wait");
    event_free(c.timer);
    return event_base_dispatch(base) < 0; /* nothing is left in it */
}

int main(void)
{
    struct event_base *base = event_base_new();

    if (base == NULL || by_libuv(uv_default_loop()) != 0 || by_libevent(base) != 0)
        return 1;
    event_base_free(base);
    return 0;
}
