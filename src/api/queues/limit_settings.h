/* limit_settings.h - the document of a concurrency limit: its settings, and those of keys.
 *
 *   {"paused":false,"override":2,"overriddenAt":…,"total":9,"totalAt":…,
 *    "totalRate":{"starts":10,"periodMs":60000},
 *    "keys":[{"key":"ann","perKey":5,"until":…},…]}
 *
 * An override of a key ends at its time, without a write: one that has ended is ignored when
 * the document is read, and left out when it is written next. */
#pragma once

#include "core/live/environment.h"
#include "runcast/store.h"

enum {
    LIMIT_KEYS_MAX = 1000,       /* overridden keys of a limit */
    LIMIT_OVERRIDES_MAX = 10000, /* of all limits of an environment together */
};

/* Returns the document with these settings and the overrides of keys that are in memory,
 * but with `changed` instead of that of the same key (key absent: none changes; per_key
 * UINT32_MAX: it is removed). NULL: there is nothing to store. The caller owns the
 * reference. */
struct bytes *limit_settings_write(const struct queues *queues, struct slice limit,
                                   const struct queue_settings *settings,
                                   const struct limit_override *changed);

/* Brings a document back into memory. */
enum err limit_settings_restore(struct environment *env, const struct document *document,
                                struct failure *why);
