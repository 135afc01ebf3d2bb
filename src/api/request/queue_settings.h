/* queue_settings.h - what users set for a queue, and the document that keeps it.
 *
 *   {"paused":true,"override":5,"overriddenAt":1732000000000}
 *
 * The document has the queue's name, and is removed when the queue is as it was registered. */
#pragma once

#include "core/engine/engine.h"

/* The body of the document, the caller's reference; NULL when there is nothing to keep. */
struct bytes *queue_settings_write(const struct queue_settings *settings);

/* ERR_INVALID: not a body of queue_settings_write. */
enum err queue_settings_read(struct slice body, struct queue_settings *settings,
                             struct failure *why);
