/* run_commands.h - cancel, reschedule, tag or annotate a run, or release its key. */
#pragma once

#include "core/engine/engine.h"

/* Canceling a final run changes nothing and is OK. reason NULL: "Canceled by user". */
struct cancel {
    struct command command; /* first */
    const char *reason;
    struct slice bulk; /* id of the bulk action, the caller's until done; absent: none */
};
void run_cancel(struct engine *engine, struct environment *env, struct slice id,
                struct cancel *cancel, command_done_fn *done);

/* Decides a command that cancels its run, for commands that do so as part of something
 * else. */
enum decision run_decide_cancel(struct command *command, const struct run *now,
                                struct run *next, const char *reason, unsigned *marks);

/* The same for a child whose parent was canceled; reports to no caller. */
void run_cancel_alone(struct engine *engine, struct environment *env, struct slice id);

/* The same for a run whose branch was archived. */
void run_cancel_archived(struct engine *engine, struct environment *env, struct slice id);

struct reschedule {
    struct command command;
    int64_t delayed_until; /* Unix ms, in the future */
};
void run_reschedule(struct engine *engine, struct environment *env, struct slice id,
                    struct reschedule *op, command_done_fn *done);

/* added: how many of the tags were new to the run. ERR_RULE: more than RUN_TAGS_MAX in all;
 * the message names the tags that were not set. */
struct add_tags {
    struct command command;
    struct slice *tags; /* the caller's until done */
    size_t count;
    size_t added;
};
void run_add_tags(struct engine *engine, struct environment *env, struct slice id,
                  struct add_tags *op, command_done_fn *done);

/* Adds the stream to the run's list, unless it is there already. ERR_INVALID: the run has
 * ended; ERR_RULE: more than RUN_STREAMS_MAX. */
struct add_stream {
    struct command command;
    struct slice key; /* the caller's until done */
};
void run_add_stream(struct engine *engine, struct environment *env, struct slice id,
                    struct add_stream *op, command_done_fn *done);

/* Replaces the metadata, or applies operations (both absent: neither). Both are JSON texts,
 * the caller's until done. A request with an id is carried out only once within an hour,
 * even if others were joined to it and other requests came in between. Repeating it is OK
 * and changes nothing. */
struct change_metadata {
    struct command command;
    struct slice replacement, operations;
    struct slice request_id; /* the caller's until done; absent: no id */
    struct claim claim;      /* the engine's: of the request */
    command_done_fn *done;   /* the engine's */
};
void run_change_metadata(struct engine *engine, struct environment *env, struct slice id,
                         struct change_metadata *op, command_done_fn *done);

/* The same on a relative of a run, joined to a command that has begun (command_join). */
void run_join_metadata(struct command *command, struct slice id,
                       struct change_metadata *op);

/* Removes the idempotency key from its run and releases the claim. ERR_NOT_FOUND: no run of
 * that task has the key. */
struct reset_key {
    struct engine *engine;
    struct store_commit commit;
    struct claim claim;
    struct bytes *key;
    void (*done)(struct reset_key *op, enum err status);
    struct list link;
};
void run_reset_key(struct engine *engine, struct environment *env, struct slice task,
                   struct slice key, struct reset_key *op,
                   void (*done)(struct reset_key *op, enum err status));
