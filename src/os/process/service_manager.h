/* service_manager.h - the interface to a service manager such as systemd.
 *
 * It passes us sockets by name (sd_listen_fds(3)), and receives the state of the service
 * and of its loop (sd_notify(3)).
 *
 *   runcast.socket ── http ──► listen = systemd:http        READY=1, STOPPING=1, STATUS=…
 *        (stays bound, and keeps clients waiting            WATCHDOG=1 while the loop turns
 *         while the service restarts)
 *
 * Everything comes from the environment. Without a service manager, there are no sockets,
 * and notifications are dropped. */
#pragma once

#include <stdint.h>

enum { SERVICE_SOCKET_NAME_MAX = 64 };

/* Returns the descriptor of the listening socket with that name. -1: none was handed over,
 * or several were. */
int service_socket(const char *name);

/* Returns the number of sockets handed over. */
unsigned service_socket_count(void);

/* Keeps processes that are started from now on from inheriting the sockets. */
void service_keep_sockets(void);

/* Sends lines of sd_notify(3): "READY=1\nSTATUS=serves". Waits briefly for a manager that
 * is not receiving, because it must not miss them. */
__attribute__((format(printf, 1, 2))) void service_notify(const char *format, ...);

/* Sends "WATCHDOG=1" without waiting: the next one follows soon. */
void service_notify_alive(void);

/* Returns how often "WATCHDOG=1" must be sent; 0: never. If it is missed, the manager kills
 * and restarts the service. */
int64_t service_watchdog_ms(void);
