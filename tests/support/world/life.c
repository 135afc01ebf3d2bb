/* life.c - parts created, loaded and destroyed in the order of gateway.c. */
#include "tests/support/world/life.h"

#include "api/router/services.h"
#include "api/schedules/schedule_sync.h"
#include "tests/support/world/unit.h"

enum { TURNS_MAX = 100000, MEMORY = 64 << 20 };

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void on_runs_loaded(struct load_runs *load, enum err status)
{
    struct life *life = container_of(load, struct life, load_runs);
    life->status = status;
    life->why = load->why;
    life->done = true;
}

static void on_accounts_loaded(struct load_accounts *load, enum err status)
{
    struct life *life = container_of(load, struct life, load_accounts);
    if (status) {
        life->status = status;
        life->why = load->why;
        life->done = true;
        return;
    }
    life->load_runs = (struct load_runs){ .engine = life->engine,
                                          .accounts = life->accounts,
                                          .api = life->api,
                                          .done = on_runs_loaded };
    load_runs_begin(&life->load_runs);
}

void life_take_lead(struct life *life, bool all_is_there, bool knows_newest)
{
    life->done = false;
    life->load_runs = (struct load_runs){ .engine = life->engine,
                                          .accounts = life->accounts,
                                          .api = life->api,
                                          .was_following = true,
                                          .all_is_there = all_is_there,
                                          .knows_newest = knows_newest,
                                          .done = on_runs_loaded };
    load_runs_begin(&life->load_runs);
    life_wait(life, &life->done);
}

static void create_parts(struct life *life, size_t memory)
{
    struct engine_options engine = { .lease_ms = 60000,
                                     .heartbeat_ms = 300000,
                                     .cancel_ms = 30000,
                                     .concurrency = 100,
                                     .memory = memory ? memory : MEMORY };
    struct api_options api = { .public_url = "", .allow_origin = "*", .metrics_token = "" };
    struct failure why;
    assert_int_equal(vault_open(SLICE(KEY_HEX), NULL, &life->vault, &why), OK);
    life->accounts = accounts_create(life->vault);
    life->engine = engine_create(life->loop, life->store, &engine);
    life->auth = auth_create(life->accounts);
    life->schedules = schedules_create(life->engine);
    life->api = api_create(life->engine, life->schedules, life->auth, life->accounts, &api);
}

void life_begin(struct life *life, struct loop *loop, struct store *store, size_t memory)
{
    *life = (struct life){ .loop = loop, .store = store };
    create_parts(life, memory);
    life->keys = fopen("/dev/null", "w");
    assert_non_null(life->keys);
    life->first = (struct first_start){
        .out = life->keys, .data = "data", .url = "http://127.0.0.1:1", .dashboard_url = ""
    };
    life->load_accounts = (struct load_accounts){ .store = store,
                                                  .accounts = life->accounts,
                                                  .loop = loop,
                                                  .first = &life->first,
                                                  .done = on_accounts_loaded };
    load_accounts_begin(&life->load_accounts);
    for (life->turns = 0; !life->done; life->turns++) {
        assert_true(life->turns < TURNS_MAX);
        loop_turn(loop, 1);
    }
}

void life_start(struct life *life)
{
    schedule_sync_all(life->api);
    engine_sweep(life->engine);
    schedules_start(life->schedules);
    life_settle(life);
}

void life_wait(struct life *life, const bool *done)
{
    for (int i = 0; !*done; i++) {
        assert_true(i < TURNS_MAX);
        loop_turn(life->loop, 1);
    }
    life_settle(life);
}

void life_settle(struct life *life)
{
    for (int i = 0; loop_turn(life->loop, 0); i++)
        assert_true(i < TURNS_MAX);
}

void life_end(struct life *life)
{
    engine_stop(life->engine);
    schedules_stop(life->schedules);
    api_stop(life->api);
    for (int i = 0; !api_may_end(life->api) || !engine_idle(life->engine) ||
                    !schedules_are_idle(life->schedules);
         i++) {
        assert_true(i < TURNS_MAX);
        loop_turn(life->loop, 1);
    }
    api_destroy(life->api);
    auth_destroy(life->auth);
    life_settle(life);
    schedules_destroy(life->schedules);
    engine_destroy(life->engine);
    accounts_destroy(life->accounts);
    vault_close(life->vault);
    fclose(life->keys);
    tag_list_forget_shared();
    bytes_forget_shared();
}
