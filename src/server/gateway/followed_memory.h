/* followed_memory.h - the accounts and runs of the leader, in the memory of a gateway that
 * stands by.
 *
 * No client is served from it. When this gateway takes the lead, it loads everything from
 * the database, as one without followed memory does, and this memory is dropped. */
#pragma once

#include "base/error.h"
#include "base/loop.h"
#include "runcast/store.h"

struct environment;
struct followed_memory;

struct followed_memory_options {
    struct store *store;
    size_t budget; /* bytes of finished runs, per environment */
    uint32_t concurrency, dev_concurrency;
    /* followed_memory_read has ended. */
    void (*on_read)(void *owner, enum err status);
    /* Returns true if the environment must leave memory. */
    bool (*was_left)(void *owner, uint32_t number);
    /* It is about to be destroyed. */
    void (*forget)(void *owner, uint32_t number);
    void *owner;
};

struct followed_memory *
followed_memory_create(struct loop *loop, const struct followed_memory_options *options);

/* Returns the environment, and creates it if its account is known; otherwise NULL. */
struct environment *followed_memory_find(struct followed_memory *memory, uint32_t number);

/* Takes a document of the accounts, unless memory has a newer version of it. */
enum err followed_memory_take(struct followed_memory *memory,
                              const struct document *document, struct failure *why);

/* Reads all documents of the accounts, and forgets those that the database does not have. */
void followed_memory_read(struct followed_memory *memory);

/* Drops final runs while they take more than the budget; the oldest changes first. Destroys
 * the environment if the leader does not have it. Continues in other turns if need be. */
void followed_memory_trim(struct followed_memory *memory, struct environment *env);

/* Drops everything in time slices, and then calls dropped: it is freed by then. Requires that
 * followed_memory_read is not in progress. */
void followed_memory_drop(struct followed_memory *memory, void (*dropped)(void *owner));
