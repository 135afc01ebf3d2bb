/* api_world.h - a gateway without its socket: server, routes, engine, accounts and a store.
 *
 * The keys of its accounts are known, and the store is in memory.
 *
 *   request ─► connection ─► api ─► engine ─► fake store ─► … ─► the text of the response
 *
 * Each request has its own connection. Everything that a request needs (a run, a token, …)
 * is created by calls that clients make. */
#pragma once

#include "accounts/account_writer.h"
#include "api/request/call.h"
#include "tests/support/fakes/fake_store.h"
#include "tests/support/world/net_fuzz.h"

struct api_world {
    struct net_fuzz net;
    struct fake_store *fake;
    struct vault *vault;
    struct accounts *accounts;
    struct account_writer *writer;
    struct engine *engine;
    struct schedules *schedules;
    struct auth *auth;
    struct api *api;
    bool server_closed;
    int status;        /* of the last response; 0: the call is held, or there was none */
    struct slice body; /* of the last response; in net.answer */
};

/* The key of an environment, the personal token, the worker token for staging, prod and
 * preview, or no credential. */
enum api_key {
    API_KEY_DEV,
    API_KEY_PROD = ENVIRONMENT_PROD,
    API_KEY_PERSONAL = ENVIRONMENT_TYPES,
    API_KEY_WORKER,
    API_KEY_NONE
};
#define API_WORLD_REF "proj_abcdefghijklmnop"

/* Opens a world in which a worker of dev has the tasks hello and tick. */
void api_world_open(struct api_world *world);

/* Registers a worker with these tasks in this key's environment. */
void api_world_register(struct api_world *world, enum api_key key);

/* Returns the account of dev, borrowed. */
struct account *api_world_account(const struct api_world *world);

/* Aborts if anything is left. */
void api_world_close(struct api_world *world);

/* Sends "METHOD target" with these headers (complete lines) and this body in pieces of
 * the given size (0: as one), and waits until it has its response or nothing more is due
 * soon. */
void api_world_ask(struct api_world *world, enum api_key key, const char *method,
                   struct slice target, struct slice headers, struct slice body,
                   size_t piece);

/* Appends a string of the last response by its path, "run.id". Returns false if it is
 * missing. */
bool api_world_text(const struct api_world *world, const char *path, struct buf *out);

/* Runs turns until nothing is due soon. */
void api_world_settle(struct api_world *world);
