/* window_load.h - what a window has from the store: its entries at first, and older ones when
 * it has lost many. */
#pragma once

#include "core/live/window.h"

/* Begins a read if the window needs one, and none is under way. loaded is called when it has
 * come: OK, or why the store does not find the runs (STORE_SLOW; after any other failure the
 * read begins anew by itself). */
void window_load_begin(struct window *window,
                       void (*loaded)(struct window *window, enum store_status status));

/* The window ends: what comes is for nobody. */
void window_load_abandon(struct window *window);
