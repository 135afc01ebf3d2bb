/* replication.h - a gateway's part in replication, if peer-listen is set.
 *
 *   stands by: follows the leader (follower.h)
 *      │ takes the lead
 *      ▼
 *   reads what memory lacks ─► leads: serves followers (server/peers/serving.h) */
#pragma once

#include "accounts/account_writer.h"
#include "core/engine/engine.h"
#include "core/replication/source.h"
#include "server/config/config.h"
#include "server/memory/follower.h"
#include "server/peers/forwarder.h"
#include "store/lead/leading.h"

struct certificates;
struct operating;
struct replication;
struct retain;

struct replication_options {
    const struct config *config;
    struct store *store;
    const struct vault *vault;
    struct certificates *certificates; /* NULL: no address speaks TLS */
    struct engine *engine;
    struct accounts *accounts;
    struct account_writer *writer;
    struct api *api;
    struct operating *operating; /* carries out the commands of followers */
    struct http_handler calls;   /* of the API, whose owner is api */
    /* Memory has everything that the database has, after replication_take_lead. */
    void (*on_loaded)(void *owner, enum err status);
    /* The leader is of another history: what this gateway has in memory cannot be used, and
     * neither can its store's epoch. */
    void (*on_other_history)(void *owner, const char *why);
    void *owner;
};

/* Listens at peer-listen. *replication is NULL if that is not set. ERR_INVALID, with the
 * reason: the address cannot be used. */
enum err replication_create(struct loop *loop, const struct replication_options *options,
                            struct replication **replication, struct failure *why);

/* The functions below ignore NULL, except replication_close, replication_stop_serving and
 * replication_stand_by. */

/* This gateway stands by; leading is borrowed until replication_close. Without peer-listen
 * (NULL), warns if the leader could be followed. */
void replication_stand_by(struct replication *replication, struct leading *leading);

/* Returns NULL unless this gateway follows, or brings its memory up to take the lead. */
struct follower *replication_follower(const struct replication *replication);

/* Returns the connections to the gateway that leads, for calls; NULL: none now. */
struct relay_pool *replication_pool(const struct replication *replication);

/* Sends a subcommand to the leader, as following_command does. */
enum err replication_command(struct replication *replication,
                             struct leader_command *command, struct slice line,
                             struct failure *why);

/* Sends a frame to a follower that has not left. */
void replication_reply(struct replication *replication, struct source_follower *to,
                       const struct repl_frame *frame);

/* It takes the lead. If it has followed a leader, reads what memory lacks, calls
 * options.on_loaded, and returns true. Otherwise memory is empty. */
bool replication_take_lead(struct replication *replication, struct leading *leading);

/* It leads, and everything is in memory. From now on, followers are served. retain reports
 * what retention removes. If it has followed before, compares memory with the database
 * (account_comparison.h, then comparison.h); after a difference, it gives up the lead. */
void replication_lead(struct replication *replication, struct retain *retain);

/* An environment has come into memory, or has been added. */
void replication_add(struct replication *replication, uint32_t environment);

/* The lead was lost, or this gateway stops: nothing is sent or received any more. */
void replication_end(struct replication *replication, const char *why);

/* Closes the connections of followers, and those of their calls, and then calls closed, maybe
 * at once. Call it before the API is destroyed. */
void replication_stop_serving(struct replication *replication, void (*closed)(void *owner));

/* Sets the certificates of connections accepted from now on. */
void replication_show(struct replication *replication, struct certificates *certificates);

/* Ends and frees everything, and then calls closed, maybe at once. Call it before the store
 * is closed. */
void replication_close(struct replication *replication, void (*closed)(void *owner));
