/* trigger_options.h - reads the options of one run from JSON into struct trigger.
 *
 *   { payload, context, options }  ─►  struct trigger, or a status and a message that names
 *                                      the option
 *
 * Used for the body of a trigger and for each item of a batch. Payload and metadata keep
 * their bytes: 1e400 comes out as 1e400. Options that the published schema has but runcast
 * lacks are rejected, or have no effect if SDKs send them on their own (trigger_undone.c).
 * Unknown options are ignored and reported to the caller. */
#pragma once

#include "base/buf.h"
#include "base/json/ignored.h"
#include "core/engine/engine.h"
#include "core/fleet/worker_versions.h"

enum {
    TRIGGER_TASK_MAX = 512,         /* bytes of a task's id */
    TRIGGER_KEY_MAX = 2048,         /* characters of an idempotency key */
    TRIGGER_OPTIONS_MAX = 512 << 10 /* bytes of all options together */
};

/* The input: valid JSON, as received. */
struct trigger_source {
    struct slice task;
    struct slice payload;      /* absent: none */
    struct slice payload_text; /* the decoded text, if the payload is a string */
    bool text_is_json;
    struct slice options;      /* absent: none */
    struct slice key, key_ttl; /* from the request's headers; they override the options */
    bool is_item;              /* an item of a batch, whose parent is named once for all */
    struct ignored *ignored;   /* collects what was ignored; NULL: not wanted */
};

/* Where the run is to execute. */
struct trigger_place {
    const struct workers *workers;
    const struct queues *queues;
    int64_t now_ms;
    bool is_dev;
};

/* The parent that the options name. The caller looks it up. */
struct trigger_parent {
    struct bytes *run_id; /* NULL: none; owned by the caller */
    bool resume;
};

/* Reads source into item and parent. Even on failure item owns what was read: call
 * run_finish. Returns with a message in why: ERR_INVALID, ERR_TOO_LARGE (metadata or all
 * options) or ERR_RULE (tags; a version that is missing, or lacks the task or the
 * queue). */
enum err trigger_options_read(const struct trigger_source *source,
                              const struct trigger_place *place, struct trigger *item,
                              struct trigger_parent *parent, struct failure *why);

/* Reads the lifetime of an idempotency key from a duration like "30s" or "1h30m". An
 * empty text means 30 days; the maximum is 36500 days. Returns ERR_INVALID if ttl is not
 * a duration. */
enum err trigger_key_ttl_ms(struct slice ttl, int64_t *ms);

/* Returns true for a number that must be meant as a duration or as seconds, because as
 * milliseconds since 1970 it would be a date before 1973-03-03. */
static inline bool trigger_number_is_no_time(double number)
{
    return number < 1e11;
}

/* Reads {key: text, scope: run | attempt | global}. Sets *shown to the key as the user
 * knows it; leaves it unchanged if value is absent. */
enum err trigger_key_options_read(struct slice value, struct bytes **shown,
                                  struct failure *why);

/* Returns true for null, "", [] or {}: an unsupported option with such a value has no
 * effect. */
bool trigger_asks_nothing(struct slice value);
