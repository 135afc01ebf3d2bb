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

/* The folders in which everybody may write: a NULL ends the list. */
extern const char *const namespace_temporary[];

/* For the first process of the namespace: those folders are this one, for all in it. False: it
 * is not permitted. */
bool namespace_cover_temporary(const char *folder);

/* Whether root may make namespaces here and change what is mounted in them; tried by a child,
 * which blocks for a moment. */
bool namespace_is_permitted(void);
