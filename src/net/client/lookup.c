/* lookup.c - looks up the addresses of a host, once for all that want them at the same time.
 *
 *   lookup ─┐
 *   lookup ─┴─► shared_lookup ─► getaddrinfo on a thread of libuv's pool */
#include "net/client/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/mem.h"

/* Freed when the request has ended and no lookup uses it. */
struct shared_lookup {
    uv_getaddrinfo_t request;
    struct list link; /* in_progress */
    struct list waiting;
    unsigned users; /* lookups that have not ended */
    bool has_ended; /* the request */
    struct addrinfo *addresses;
    uint16_t port;
    char host[URL_HOST_MAX + 1];
};

/* Requests that have not ended, of all loops. */
static struct list in_progress = { &in_progress, &in_progress };

static void maybe_free(struct shared_lookup *shared)
{
    if (shared->users || !shared->has_ended)
        return;
    uv_freeaddrinfo(shared->addresses);
    free(shared);
}

/* Each done may end any of the lookups. */
static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct shared_lookup *shared = container_of(request, struct shared_lookup, request);
    list_remove(&shared->link);
    shared->addresses = addresses;
    shared->users++; /* until all are called */
    shared->has_ended = true;
    while (!list_empty(&shared->waiting)) {
        struct lookup *lookup =
            container_of(list_take(&shared->waiting), struct lookup, link);
        lookup->done(lookup, status, addresses);
    }
    shared->users--;
    maybe_free(shared);
}

static struct shared_lookup *find(struct uv_loop_s *loop, const struct url *url)
{
    list_each (link, &in_progress) {
        struct shared_lookup *shared = container_of(link, struct shared_lookup, link);
        if (shared->request.loop == loop && shared->port == url->port &&
            !strcmp(shared->host, url->host))
            return shared;
    }
    return NULL;
}

static struct shared_lookup *start(struct uv_loop_s *loop, const struct url *url)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_flags = url->is_ip ? AI_NUMERICHOST : 0 };
    struct shared_lookup *shared = mem_new(struct shared_lookup);
    char port[sizeof("65535")];
    snprintf(port, sizeof(port), "%u", (unsigned)url->port);
    snprintf(shared->host, sizeof(shared->host), "%s", url->host);
    shared->port = url->port;
    list_init(&shared->waiting);
    if (uv_getaddrinfo(loop, &shared->request, on_resolved, url->host, port, &hints)) {
        free(shared);
        return NULL;
    }
    list_append(&in_progress, &shared->link);
    return shared;
}

bool lookup_begin(struct loop *loop, const struct url *url, struct lookup *lookup)
{
    struct shared_lookup *shared = find(loop_uv(loop), url);
    if (!shared)
        shared = start(loop_uv(loop), url);
    if (!shared)
        return false;
    shared->users++;
    lookup->shared = shared;
    list_append(&shared->waiting, &lookup->link);
    return true;
}

/* A request that a thread has begun stays in progress: another lookup may join it. */
void lookup_end(struct lookup *lookup)
{
    struct shared_lookup *shared = lookup->shared;
    if (!shared)
        return;
    lookup->shared = NULL;
    list_remove(&lookup->link);
    shared->users--;
    if (!shared->users && !shared->has_ended && !uv_cancel((uv_req_t *)&shared->request))
        list_remove(&shared->link);
    maybe_free(shared);
}

/* Returns how many threads are at lookups of the loop that have no users. */
static unsigned count_unused(const struct uv_loop_s *uv)
{
    unsigned count = 0;
    list_each (link, &in_progress) {
        const struct shared_lookup *shared = container_of(link, struct shared_lookup, link);
        count += shared->request.loop == uv && !shared->users;
    }
    return count;
}

static void note_handle(uv_handle_t *handle, void *has_handles)
{
    bool keeps_alive =
        uv_is_closing(handle) || (uv_is_active(handle) && uv_has_ref(handle));
    *(bool *)has_handles |= keeps_alive;
}

void lookup_run_others(struct uv_loop_s *uv)
{
    while (uv_run(uv, UV_RUN_NOWAIT)) {
        bool has_handles = false;
        uv_walk(uv, note_handle, &has_handles);
        if (!has_handles && uv->active_reqs.count == count_unused(uv))
            return;
        uv_run(uv, UV_RUN_ONCE);
    }
}

void lookup_shut_down(int status)
{
    if (!list_empty(&in_progress)) {
        fflush(stdout);
        _Exit(status);
    }
    uv_library_shutdown();
}
