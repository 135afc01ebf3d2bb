/* lookup.h - looks up the addresses of a host, off the loop; private to client.
 *
 *   lookup_begin ─► on a thread of libuv's pool ─► done, once, on the loop
 *   lookup_end, at any time: done is not called any more, and the addresses are freed
 *
 * If no name server responds, a thread needs many seconds, and cannot be stopped. Its caller
 * need not wait for it: lookup_end takes effect at once. Lookups of the same host and port
 * share one thread. Otherwise, callers that retry one unknown name would occupy all threads
 * that libuv has for names (two), and those of other names would wait. */
#pragma once

#include <netdb.h>

#include "base/list.h"
#include "base/loop.h"
#include "net/client/url.h"

struct shared_lookup;
struct uv_loop_s;

/* Embedded by its owner, who zeroes it. */
struct lookup {
    /* status: 0, or an error of libuv; then there are no addresses. */
    void (*done)(struct lookup *lookup, int status, const struct addrinfo *addresses);
    struct shared_lookup *shared; /* NULL: not begun, or ended */
    struct list link;             /* shared_lookup::waiting */
};

/* Returns false if no lookup could be started; done is not called then. The addresses are
 * valid until lookup_end. */
bool lookup_begin(struct loop *loop, const struct url *url, struct lookup *lookup);

/* Ignores one that was not begun, or that has ended. */
void lookup_end(struct lookup *lookup);

/* Runs the loop until nothing keeps it alive but lookups, each of which has been ended while a
 * thread was at it. If such are left, the loop cannot be closed, and its memory must stay. */
void lookup_run_others(struct uv_loop_s *uv);

/* Calls uv_library_shutdown, at the end of a process. If a thread still looks up a name, exits
 * with the status: uv_library_shutdown and exit() wait for all threads. */
void lookup_shut_down(int status);
