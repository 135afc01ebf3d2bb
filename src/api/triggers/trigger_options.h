/* trigger_options.h - what a caller wishes for one run, from JSON to struct trigger.
 *
 *   { payload, context, options }  ─►  struct trigger, or a status and a text that names
 *                                      the option
 *
 * For the body of a trigger and for each item of a batch. Payload and metadata keep their
 * bytes: 1e400 comes out as 1e400. Options that
 * the published schema has and runcast does not do are refused, or without effect when SDKs
 * send them by themselves (trigger_undone.c); those that it does not have are told to the
 * caller and ignored. */
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

/* Valid JSON as it came. */
struct trigger_source {
    struct slice task;
    struct slice payload;      /* absent: none */
    struct slice payload_text; /* what it stands for, if it is a string */
    bool text_is_json;
    struct slice options;      /* absent: none */
    struct slice key, key_ttl; /* of the request's headers; they win */
    bool is_item;              /* of a batch, which has a parent for all */
    struct ignored *ignored;   /* told what is not read; NULL: nobody is */
};

/* Where it is to run. */
struct trigger_place {
    const struct workers *workers;
    const struct queues *queues;
    int64_t now_ms;
    bool is_dev;
};

/* A parent is the caller's to look up. */
struct trigger_parent {
    struct bytes *run_id; /* NULL: none; the caller's to unref */
    bool resume;
};

/* Fills in the wishes. What it took is the item's even on failure: run_finish.
 * ERR_INVALID, ERR_TOO_LARGE (metadata), ERR_RULE (tags; a version that is not there, or lacks
 * the task or the queue) with the reason. */
enum err trigger_options_read(const struct trigger_source *source,
                              const struct trigger_place *place, struct trigger *item,
                              struct trigger_parent *parent, struct failure *why);

/* The life of an idempotency key by the text of its ttl, a duration like "30s" or "1h30m":
 * at most 36500 days, and 30 days for no text. ERR_INVALID: it is no duration. */
enum err trigger_key_ttl_ms(struct slice ttl, int64_t *ms);

/* A number that is meant as a duration or as seconds: as milliseconds since 1970 it would be a
 * date before 1973-03-03. */
static inline bool trigger_number_is_no_time(double number)
{
    return number < 1e11;
}

/* {key: text, scope: run | attempt | global} or absent: the key as the user knows it. */
enum err trigger_key_options_read(struct slice value, struct bytes **shown,
                                  struct failure *why);

/* null, "", [] or {}: for what runcast does not do, the same as nothing. */
bool trigger_asks_nothing(struct slice value);
