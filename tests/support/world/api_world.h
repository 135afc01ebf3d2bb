/* api_world.h - everything behind the socket in one place: the server, the routes, the
 * engine, accounts with known keys, and a store in memory.
 *
 *   request ─► connection ─► api ─► engine ─► fake store ─► … ─► the answer's text
 *
 * Each request has a connection of its own. What is made for it (a run, a token, …) is made
 * by the calls that clients make. */
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
    int status;        /* of the last answer; 0: the call is held, or there was none */
    struct slice body; /* of the last answer; in net.answer */
};

/* The key of an environment, the personal token, the token of the workers that take runs of
 * staging, prod and preview, or no credential. */
enum api_key {
    API_KEY_DEV,
    API_KEY_PROD = ENVIRONMENT_PROD,
    API_KEY_PERSONAL = ENVIRONMENT_TYPES,
    API_KEY_WORKER,
    API_KEY_NONE
};
#define API_WORLD_REF "proj_abcdefghijklmnop"

/* Ready; a worker of dev knows the tasks hello and tick. */
void api_world_open(struct api_world *world);

/* A worker of this key's environment knows them too. */
void api_world_register(struct api_world *world, enum api_key key);

/* Into the store, as if it had lain there; the changes stay the caller's. */
void api_world_write(struct api_world *world, struct change *changes, size_t count);

/* Borrowed: dev, as an account. */
struct account *api_world_account(const struct api_world *world);

/* Aborts when something was left behind. */
void api_world_close(struct api_world *world);

/* Sends "POST /path" with these headers (complete lines) and this body in pieces of the
 * given size (0: whole), and waits until it is answered or nothing more is due soon. */
void api_world_ask(struct api_world *world, enum api_key key, const char *method,
                   struct slice target, struct slice headers, struct slice body,
                   size_t piece);

/* A text member of the last answer, by its path: "run.id"; false: there is none. */
bool api_world_text(const struct api_world *world, const char *path, struct buf *out);

/* Turns until nothing is due soon. */
void api_world_settle(struct api_world *world);
