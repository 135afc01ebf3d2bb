/* gateways.h - several gateways on a database that this file simulates; one of them leads.
 * Any of them may stop, be cut off or return. Each has its own event loop, and thus its own
 * clock. */
#pragma once

#include "store/lead/leading.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

enum { GATEWAYS = 3, TURN_MS = 100 };

/* A gateway and its view of the database, which is its store. */
struct process {
    struct store store;
    struct leading *leading;
    struct loop *loop;
    uint64_t id; /* 0: has no row */
    char name[8];
    uint64_t beat;
    bool cut;            /* the database gets nothing from it and does not respond */
    bool stopped;        /* its loop does not turn */
    uint64_t session;    /* of its connection; 0: it was killed */
    uint64_t registered; /* the session that its last beat registered; 0: none */
    bool pooled;         /* its session cannot be registered */
    bool draining;       /* as in its last beat */
    bool serves;         /* it has an address for its peers */
    bool refused;        /* its next take fails with an unknown result */
    int64_t ahead_ms;    /* how far its wall clock is ahead */
    struct store_beat *beating;
    struct store_lead *taking;
    struct store_leave *leaving;
    uint64_t named; /* the successor that it named when it left */
    unsigned standby, taken, lost, beats, doubts, certain, left, others;
    bool for_good;
    const char *reason;
};

static struct {
    struct process all[GATEWAYS];
    size_t count;
    uint64_t next_id, next_session, leader;
    int64_t now_ms, dead_ms, beat_ms;
} world;

static const int64_t begun_ms = 1760000000000;

static inline struct process *of_store(struct store *store)
{
    return container_of(store, struct process, store);
}

static inline struct process *of_id(uint64_t id)
{
    for (size_t i = 0; i < world.count; i++)
        if (id && world.all[i].id == id)
            return &world.all[i];
    return NULL;
}

/* ---- the database ---- */

static inline void begin_beat(struct store *store, struct store_beat *req)
{
    assert_null(of_store(store)->beating);
    of_store(store)->beating = req;
}

static inline void begin_lead(struct store *store, struct store_lead *req)
{
    assert_null(of_store(store)->taking);
    of_store(store)->taking = req;
}

static inline enum store_session session_of(const struct process *process)
{
    if (!process->registered)
        return SESSION_UNKNOWN;
    return process->registered == process->session ? SESSION_OPEN : SESSION_ENDED;
}

static inline void answer_beat(struct process *process)
{
    struct store_beat *req = process->beating;
    struct store_gateway gateways[GATEWAYS] = { 0 };
    process->beating = NULL;
    process->beats++;
    if (process->cut) {
        req->done(req, STORE_FAILED);
        return;
    }
    process->beat++;
    process->draining = req->draining;
    process->registered = req->registers && !process->pooled ? process->session : 0;
    for (size_t i = 0; i < world.count; i++) {
        if (!world.all[i].id)
            continue;
        struct store_gateway *gateway = &gateways[req->gateway_count++];
        *gateway = (struct store_gateway){ .id = world.all[i].id,
                                           .beat = world.all[i].beat,
                                           .session = session_of(&world.all[i]),
                                           .draining = world.all[i].draining };
        snprintf(gateway->name, sizeof(gateway->name), "%s", world.all[i].name);
        snprintf(gateway->peer_url, sizeof(gateway->peer_url), "%s",
                 world.all[i].serves ? "http://peer" : "");
    }
    req->gateways = gateways;
    req->me = process->id;
    req->leader = world.leader;
    req->clock_ms = world.now_ms;
    req->done(req, process->id ? STORE_OK : STORE_MOVED);
}

static inline bool may_take(const struct process *process, const struct store_lead *req,
                            uint64_t leader)
{
    if (!leader || leader == process->id || !of_id(leader))
        return true;
    for (size_t i = 0; i < req->dead_count; i++)
        if (req->dead[i].id == leader && req->dead[i].beat == of_id(leader)->beat)
            return true;
    return false;
}

static inline void answer_lead(struct process *process)
{
    struct store_lead *req = process->taking;
    process->taking = NULL;
    if (process->cut || process->refused) {
        process->refused = false;
        req->done(req, STORE_FAILED);
    } else if (!process->id) {
        req->done(req, STORE_MOVED);
    } else if (may_take(process, req, world.leader)) {
        world.leader = process->id;
        req->done(req, STORE_OK);
    } else {
        req->done(req, STORE_TAKEN);
    }
}

static inline void begin_leave(struct store *store, struct store_leave *req)
{
    of_store(store)->leaving = req;
}

/* Deletes its row and notifies the others. */
static inline void answer_leave(struct process *process)
{
    struct store_leave *req = process->leaving;
    process->leaving = NULL;
    if (process->cut) {
        req->done(req, STORE_FAILED);
        return;
    }
    process->id = 0;
    process->named = req->successor;
    for (size_t i = 0; i < world.count; i++)
        if (&world.all[i] != process)
            world.all[i].store.on_left(world.all[i].store.moved_owner, req->successor);
    req->done(req, STORE_OK);
}

static inline void forget(struct store *store, struct store_forget *req)
{
    (void)store;
    for (size_t i = 0; i < req->dead_count; i++) {
        struct process *dead = of_id(req->dead[i].id);
        if (dead && dead->beat == req->dead[i].beat)
            dead->id = 0;
    }
    req->done(req, STORE_OK);
}

static const struct store_ops several = {
    .beat = begin_beat, .lead = begin_lead, .leave = begin_leave, .forget = forget
};
static const struct store_ops alone = { 0 };

/* Its connection ends, and it opens another one. */
static inline void end_session(struct process *process)
{
    struct store_beat *req = process->beating;
    process->beating = NULL;
    process->session = ++world.next_session;
    if (req)
        req->done(req, STORE_FAILED);
    process->store.on_cut(process->store.moved_owner);
}

static inline void kill_process(struct process *process)
{
    process->stopped = true;
    process->session = 0;
}

/* ---- processes ---- */

static inline void on_standby(void *owner)
{
    ((struct process *)owner)->standby++;
}

static inline void on_taken(void *owner)
{
    ((struct process *)owner)->taken++;
}

static inline void on_lost(void *owner, const char *reason, bool for_good)
{
    struct process *process = owner;
    process->lost++;
    process->reason = reason;
    process->for_good = for_good;
}

static inline void on_other_leads(void *owner)
{
    ((struct process *)owner)->others++;
}

static inline void on_doubt(void *owner)
{
    ((struct process *)owner)->doubts++;
}

static inline void on_certain(void *owner)
{
    ((struct process *)owner)->certain++;
}

static inline void on_left(void *owner)
{
    ((struct process *)owner)->left++;
}

static inline struct process *start(const char *name, const struct store_ops *ops)
{
    struct process *process = &world.all[world.count++];
    *process = (struct process){ .store.ops = ops,
                                 .id = ++world.next_id,
                                 .session = ++world.next_session };
    snprintf(process->name, sizeof(process->name), "%s", name);
    process->loop = loop_create(NULL);
    loop_set_wall(process->loop, world.now_ms);
    struct leading_options options = { .name = process->name,
                                       .beat_ms = world.beat_ms,
                                       .dead_ms = world.dead_ms,
                                       .on_standby = on_standby,
                                       .on_other_leads = on_other_leads,
                                       .on_taken = on_taken,
                                       .on_lost = on_lost,
                                       .on_doubt = on_doubt,
                                       .on_certain = on_certain,
                                       .owner = process };
    process->leading = leading_create(process->loop, &process->store, &options);
    return process;
}

static inline void turn(struct process *process, int64_t ms)
{
    loop_set_wall(process->loop, world.now_ms - ms + process->ahead_ms);
    loop_turn(process->loop, ms);
    if (process->beating)
        answer_beat(process);
    if (process->leaving)
        answer_leave(process);
    if (process->taking)
        answer_lead(process);
    loop_turn(process->loop, 0);
}

/* Advances all clocks. A stopped process notices the gap when it continues. */
static inline void pass(int64_t ms)
{
    static int64_t slept[GATEWAYS];
    for (; ms > 0; ms -= TURN_MS) {
        world.now_ms += TURN_MS;
        for (size_t i = 0; i < world.count; i++) {
            slept[i] += TURN_MS;
            if (world.all[i].stopped)
                continue;
            turn(&world.all[i], slept[i]);
            slept[i] = 0;
        }
    }
}

static inline bool leads(const struct process *process)
{
    return !leading_why_not(process->leading);
}

static inline struct process *start_and_lead(const char *name)
{
    struct process *process = start(name, &several);
    pass(1000);
    assert_int_equal(process->taken, 1);
    leading_loaded(process->leading);
    assert_true(leads(process));
    return process;
}

static inline void assert_why_not(const struct process *process, const char *word)
{
    assert_string_equal(leading_why_not(process->leading), word);
}

static inline int open_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.now_ms = begun_ms;
    world.dead_ms = 5000;
    world.beat_ms = 1000;
    return 0;
}

static inline int close_world(void **state)
{
    (void)state;
    for (size_t i = 0; i < world.count; i++) {
        leading_stop(world.all[i].leading);
        leading_destroy(world.all[i].leading);
        loop_destroy(world.all[i].loop);
    }
    return 0;
}
