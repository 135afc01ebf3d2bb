/* readiness.c - our own epoll inside libuv's. */
#include "net/readiness.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/list.h"

enum { BATCH = 64 };

static struct readiness_watch *watch_of(const struct epoll_event *event)
{
    return event->data.ptr;
}

/* Sorts events by when their sockets were served; they are nearly in this order already. */
static void put_in_line(struct epoll_event *events, int count)
{
    for (int i = 1; i < count; i++) {
        struct epoll_event event = events[i];
        int at = i;
        for (; at > 0 && watch_of(&events[at - 1])->served > watch_of(&event)->served; at--)
            events[at] = events[at - 1];
        events[at] = event;
    }
}

static void on_ready(uv_poll_t *handle, int status, int what)
{
    struct readiness *readiness = container_of(handle, struct readiness, handle);
    struct epoll_event events[BATCH];
    int count = BATCH;
    loop_begin_share(readiness->loop);
    struct timeslice timeslice = loop_timeslice(readiness->loop);
    (void)status, (void)what;
    bool left_some = readiness->left_some;
    readiness->left_some = false;
    readiness->serving = loop_timeslice(readiness->loop);
    while (count == BATCH && timeslice_left(&timeslice)) {
        count = epoll_wait(readiness->fd, events, BATCH, 0);
        if (left_some)
            put_in_line(events, count);
        for (int i = 0; i < count; i++)
            watch_of(&events[i])->fn(watch_of(&events[i]), events[i].events);
    }
}

bool readiness_init(struct readiness *readiness, struct loop *loop)
{
    readiness->loop = loop;
    readiness->fd = epoll_create1(EPOLL_CLOEXEC);
    if (readiness->fd < 0)
        return false;
    int error = uv_poll_init(loop_uv(loop), &readiness->handle, readiness->fd);
    if (error) {
        close(readiness->fd);
        readiness->fd = -1;
        errno = -error;
        return false;
    }
    uv_poll_start(&readiness->handle, UV_READABLE, on_ready);
    return true;
}

bool readiness_watch(struct readiness *readiness, struct readiness_watch *watch,
                     uint32_t events)
{
    if (events == watch->events)
        return true;
    struct epoll_event event = { .events = events, .data.ptr = watch };
    int operation = !events ? EPOLL_CTL_DEL : watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    watch->events = events;
    return !epoll_ctl(readiness->fd, operation, watch->fd, &event);
}

bool readiness_may_serve(struct readiness *readiness, struct readiness_watch *watch)
{
    if (!timeslice_left(&readiness->serving)) {
        readiness->left_some = true;
        return false;
    }
    watch->served = ++readiness->served;
    return true;
}

void readiness_close(struct readiness *readiness, uv_close_cb closed)
{
    uv_close((uv_handle_t *)&readiness->handle, closed);
    close(readiness->fd);
    readiness->fd = -1;
}
