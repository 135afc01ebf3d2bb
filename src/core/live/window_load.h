/* window_load.h - reads a window's runs from the store: at first, and when few are left. */
#pragma once

#include "core/live/window.h"

/* Begins a read if the window needs one and none is in flight. Calls loaded when it ends,
 * with STORE_OK, or with STORE_SLOW if the store could not find the runs in time. After any
 * other failure, the read is repeated. */
void window_load_begin(struct window *window,
                       void (*loaded)(struct window *window, enum store_status status));

/* Discards the read in flight: the window ends. */
void window_load_abandon(struct window *window);
