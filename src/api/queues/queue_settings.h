/* queue_settings.h - the document that stores users' settings of a queue.
 *
 *   {"paused":true,"override":5,"overriddenAt":1732000000000,"singleton":"skip",
 *    "totalRate":{"starts":10,"periodMs":60000}}
 *
 * The document has the queue's name, and is removed when the queue is back to how it was
 * registered. */
#pragma once

#include "core/engine/engine.h"

/* Returns the body of the document, which the caller owns; NULL if there is nothing to
 * store. */
struct bytes *queue_settings_write(const struct queue_settings *settings);

/* Returns ERR_INVALID if body did not come from queue_settings_write. */
enum err queue_settings_read(struct slice body, struct queue_settings *settings,
                             struct failure *why);
