/* namespace.h - a PID namespace: what is started in it cannot leave it, and ends with it.
 *
 * Root may make one. Without root it takes a user namespace around it, in which the user
 * stays who it is; not every machine permits that. */
#pragma once

#include <stdbool.h>

/* True: the next child is the first of a new namespace. False: errno says why there is none,
 * and nothing has changed. */
bool namespace_begin(void);

/* For the first process of the namespace: /proc shows the namespace. False: it is not
 * permitted, and /proc shows the processes outside. */
bool namespace_mount_proc(void);
