/* service_manager.h - what a service manager such as systemd hands over at the start, and what it is
 * told: sockets by name (sd_listen_fds(3)), and the state of the service and of its loop
 * (sd_notify(3)).
 *
 *   runcast.socket ── http ──► listen = systemd:http        READY=1, STOPPING=1, STATUS=…
 *        (stays bound, and keeps who connects               WATCHDOG=1 as long as the loop turns
 *         while the service is restarted)
 *
 * All of it is in the environment. Without a service manager no socket is there, and nobody hears
 * what is told. */
#pragma once

#include <stdint.h>

enum { SERVICE_SOCKET_NAME_MAX = 64 };

/* The descriptor of the socket of that name, which listens already; -1: none was handed over, or
 * several were. */
int service_socket(const char *name);

/* How many were handed over. */
unsigned service_socket_count(void);

/* What is started from here on has none of them. */
void service_keep_sockets(void);

/* Lines of sd_notify(3): "READY=1\nSTATUS=serves". Waits a little for a manager that does not
 * listen now: it must not miss them. */
__attribute__((format(printf, 1, 2))) void service_tell(const char *format, ...);

/* "WATCHDOG=1", without waiting: the next one comes soon. */
void service_tell_life(void);

/* How often "WATCHDOG=1" has to be told, or the service is killed and started anew; 0: never. */
int64_t service_watchdog_ms(void);
