/* namespace.h - a PID namespace, which its processes cannot leave or outlive.
 *
 * Root may create one. Any other user needs a user namespace around it, which keeps the
 * user the same; not every machine permits that. */
#pragma once

#include <stdbool.h>

/* Returns true if the next child will be the first process of a new namespace. On false,
 * with errno, nothing has changed. */
bool namespace_begin(void);

/* Makes /proc show the namespace. For the first process of the namespace. Returns false if
 * that is not permitted; /proc then shows the processes outside. */
bool namespace_mount_proc(void);

/* The folders in which every user may write; ended by NULL. */
extern const char *const namespace_temporary[];

/* Replaces those folders with this one, for all processes of the namespace. For the first
 * process of the namespace. Returns false if that is not permitted. */
bool namespace_cover_temporary(const char *folder);

/* Returns true if root may create namespaces here and change the mounts in them. It tries
 * this in a child, which blocks for a moment. */
bool namespace_is_permitted(void);
