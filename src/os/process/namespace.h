/* namespace.h - a PID namespace: its processes cannot leave it, and end with it.
 *
 * Root may create one. Another user needs a user namespace around it, in which the user
 * stays the same; not every machine permits that. */
#pragma once

#include <stdbool.h>

/* Returns true if the next child is the first process of a new namespace. False, with
 * errno: not possible, and nothing has changed. */
bool namespace_begin(void);

/* Makes /proc show the namespace. For the first process of the namespace. Returns false if
 * it is not permitted; /proc then shows the processes outside. */
bool namespace_mount_proc(void);

/* The folders in which every user may write; ended by NULL. */
extern const char *const namespace_temporary[];

/* Replaces those folders by this one, for all processes of the namespace. For the first
 * process of the namespace. Returns false if it is not permitted. */
bool namespace_cover_temporary(const char *folder);

/* Returns true if root may create namespaces here and change the mounts in them. It tries
 * this in a child, which blocks for a moment. */
bool namespace_is_permitted(void);
