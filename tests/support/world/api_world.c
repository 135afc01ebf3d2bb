/* api_world.c - makes the parts of the world, and makes calls on its own connections. */
#include "tests/support/world/api_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/router/dispatch.h"
#include "api/router/services.h"
#include "api/schedules/schedules.h"
#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/http/server_state.h"

enum { CHANGES_MAX = 16, SOON_MS = 2, TURNS_MAX = 100000 };

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static const struct bootstrap first = {
    .project_ref = API_WORLD_REF,
    .secret_keys = { "tr_dev_abcdefghijklmnopqrstuvwx", "tr_stg_abcdefghijklmnopqrstuvwx",
                     "tr_prod_abcdefghijklmnopqrstuvwx",
                     "tr_preview_abcdefghijklmnopqrstuvwx" },
    .personal_token = "tr_pat_abcdefghijklmnopqrstuvwxyz0123456789abcd",
};

static const char worker_token[] = "tr_wgt_abcdefghijklmnopqrstuvwxyz0123456789abcd";

static void demand(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "api_world: %s\n", what);
    abort();
}

/* Waits only for what is due soon: timers of minutes are always there. Returns false if
 * nothing is due soon. */
static bool turn(struct api_world *world)
{
    uv_loop_t *uv = &world->net.world.uv;
    uv_run(uv, UV_RUN_NOWAIT);
    int wait = uv_backend_timeout(uv);
    if (wait < 0 || wait > SOON_MS)
        return false;
    if (wait)
        usleep((unsigned)wait * 1000);
    return true;
}

/* ---- accounts ---- */

static void on_environment(void *owner, struct account *account)
{
    struct api_world *world = owner;
    api_add_environment(world->api, account);
}

struct writing {
    struct store_commit commit;
    bool done;
};

static void on_written(struct store_commit *commit, enum store_status status)
{
    demand(status == STORE_OK, "it was not written");
    container_of(commit, struct writing, commit)->done = true;
}

/* The changes stay the caller's. */
static void write_changes(struct api_world *world, struct change *changes, size_t count)
{
    struct store *store = fake_store_store(world->fake);
    struct writing writing = { .commit = { .changes = changes,
                                           .change_count = count,
                                           .now_ms = loop_wall_ms(world->net.world.loop),
                                           .done = on_written } };
    store->ops->commit(store, &writing.commit);
    while (!writing.done)
        turn(world);
}

static void make_accounts(struct api_world *world)
{
    struct change changes[CHANGES_MAX];
    struct failure why;
    int64_t now = loop_wall_ms(world->net.world.loop);
    size_t count = accounts_bootstrap(world->accounts, &first, now, changes);
    write_changes(world, changes, count);
    for (size_t i = 0; i < count; i++) {
        demand(!accounts_add(world->accounts, &changes[i].document, &why), why.text);
        change_finish(&changes[i]);
    }
    demand(!accounts_link(world->accounts, &why), why.text);
    for (struct account *a = NULL; (a = accounts_next(world->accounts, a));)
        on_environment(world, a);
}

struct granting {
    struct account_write write;
    bool done;
};

static enum err decide_worker_token(struct account_write *write, struct accounts *accounts,
                                    struct draft *draft)
{
    (void)write;
    const struct project *project = accounts_project(accounts, SLICE(API_WORLD_REF));
    draft_worker_token(draft, project->id, ENVIRONMENTS_DEPLOYED, SLICE("worker"),
                       worker_token);
    return OK;
}

static void on_granted(struct account_write *write, enum err status)
{
    demand(!status, write->why.text);
    container_of(write, struct granting, write)->done = true;
}

static void make_worker_token(struct api_world *world)
{
    struct granting granting = { .write = { .decide = decide_worker_token,
                                            .done = on_granted } };
    account_write_begin(world->writer, &granting.write);
    while (!granting.done)
        turn(world);
}

/* ---- open, close ---- */

static void create_parts(struct api_world *world)
{
    struct loop *loop = world->net.world.loop;
    struct store *store = fake_store_store(world->fake);
    struct engine_options engine = { .lease_ms = 60000,
                                     .heartbeat_ms = 300000,
                                     .cancel_ms = 30000,
                                     .concurrency = 100,
                                     .memory = 64 << 20 };
    struct api_options api = { .public_url = "",
                               .own_url = "http://127.0.0.1",
                               .allow_origin = "*",
                               .metrics_token = "",
                               .subscriptions_max = 100,
                               .realtime_connections = 100,
                               .project_connections = 200,
                               .batch_memory = 64 << 20,
                               .schedules_max = 1000,
                               .branches_max = 200,
                               .stream_memory = 64 << 20,
                               .trace_rows = 10000,
                               .trace_bytes = 8 << 20,
                               .stream_bytes = 4 << 20,
                               .dequeue_wait_ms = 1,
                               .drain_timeout_ms = 1000,
                               .owner = world };
    struct failure why;
    demand(!vault_open(SLICE(KEY_HEX), NULL, &world->vault, &why), why.text);
    world->accounts = accounts_create(world->vault);
    world->writer = api.writer = account_writer_create(loop, store, world->accounts);
    account_writer_on_environment(world->writer, on_environment, world);
    world->engine = engine_create(loop, store, &engine);
    world->schedules = schedules_create(world->engine);
    world->auth = auth_create(world->accounts);
    world->api =
        api_create(world->engine, world->schedules, world->auth, world->accounts, &api);
}

void api_world_register(struct api_world *world, enum api_key key)
{
    api_world_ask(
        world, key, "POST", SLICE("/api/v1/projects/" API_WORLD_REF "/background-workers"),
        (struct slice){ 0 },
        SLICE("{\"metadata\":{\"contentHash\":\"a\",\"tasks\":[{\"id\":\"hello\"},"
              "{\"id\":\"tick\",\"triggerSource\":\"schedule\"}]}}"),
        0);
    demand(world->status == 200, "the worker was refused");
}

struct account *api_world_account(const struct api_world *world)
{
    const struct project *project = accounts_project(world->accounts, SLICE(API_WORLD_REF));
    return accounts_environment(world->accounts, project, ENVIRONMENT_DEV);
}

void api_world_open(struct api_world *world)
{
    struct server_options options = { .handler = api_handler() };
    *world = (struct api_world){ 0 };
    log_configure(LOG_ERROR, LOG_LOGFMT);
    net_fuzz_open(&world->net, options);
    world->fake = fake_store_create(world->net.world.loop);
    create_parts(world);
    world->net.world.server->options.owner = world->api;
    make_accounts(world);
    make_worker_token(world);
    api_set_ready(world->api, NULL);
    api_world_register(world, API_KEY_DEV);
}

static void on_server_closed(struct server *server)
{
    struct api_world *world = api_options(server_owner(server))->owner;
    world->server_closed = true;
}

void api_world_close(struct api_world *world)
{
    uv_loop_t *uv = &world->net.world.uv;
    engine_stop(world->engine);
    schedules_stop(world->schedules);
    api_set_ready(world->api, "stopping");
    api_stop(world->api);
    server_close(world->net.world.server, on_server_closed);
    for (int i = 0; !world->server_closed || !api_may_end(world->api) ||
                    !engine_idle(world->engine) || !schedules_are_idle(world->schedules) ||
                    !account_writer_idle(world->writer) || !fake_store_idle(world->fake);
         i++) {
        demand(i < TURNS_MAX, "it does not stop");
        turn(world);
    }
    api_destroy(world->api);
    auth_destroy(world->auth);
    schedules_destroy(world->schedules);
    engine_destroy(world->engine);
    account_writer_destroy(world->writer);
    accounts_destroy(world->accounts);
    vault_close(world->vault);
    fake_store_destroy(world->fake);
    loop_destroy(world->net.world.loop);
    uv_run(uv, UV_RUN_DEFAULT);
    demand(uv_loop_close(uv) == 0, "a handle was left");
    tag_list_forget_shared();
    bytes_forget_shared();
    buf_finish(&world->net.answer);
}

/* ---- one request ---- */

static void add_credential(struct buf *head, enum api_key key)
{
    const char *text = key == API_KEY_PERSONAL ? first.personal_token
                       : key == API_KEY_WORKER ? worker_token
                       : key == API_KEY_NONE   ? NULL
                                               : first.secret_keys[key];
    if (text)
        buf_print(head, "Authorization: Bearer %s\r\n", text);
}

/* Status and body of the bytes received so far. */
static void read_answer(struct api_world *world)
{
    struct slice answer = buf_slice(&world->net.answer);
    const char *end = answer.len ? memmem(answer.ptr, answer.len, "\r\n\r\n", 4) : NULL;
    world->status = 0;
    world->body = (struct slice){ 0 };
    if (!end || !slice_starts(answer, "HTTP/1.1 "))
        return;
    uint64_t status = 0;
    struct slice digits = { answer.ptr + 9, 3 };
    world->status = text_to_u64(digits, &status) ? 0 : (int)status;
    world->body = slice_from(answer, (size_t)(end - answer.ptr) + 4);
}

void api_world_settle(struct api_world *world)
{
    for (int i = 0;; i++) {
        size_t had = world->net.answer.len;
        bool more = turn(world);
        net_fuzz_take(&world->net);
        if (world->net.ended || (!more && world->net.answer.len == had))
            return;
        demand(i < TURNS_MAX, "it does not come to rest");
    }
}

void api_world_ask(struct api_world *world, enum api_key key, const char *method,
                   struct slice target, struct slice headers, struct slice body,
                   size_t piece)
{
    struct buf head = { 0 };
    buf_print(&head, "%s %.*s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n", method,
              SLICE_ARG(target));
    add_credential(&head, key);
    buf_add(&head, headers);
    buf_print(&head, "Content-Length: %zu\r\n\r\n", body.len);
    net_fuzz_begin(&world->net);
    net_fuzz_send(&world->net, buf_slice(&head), 0);
    net_fuzz_send(&world->net, body, piece);
    if (!world->net.ended)
        api_world_settle(world);
    net_fuzz_end(&world->net);
    read_answer(world);
    buf_finish(&head);
}

bool api_world_text(const struct api_world *world, const char *path, struct buf *out)
{
    struct slice value = world->body, rest = slice_of(path), name;
    if (!scan_is_json(value))
        return false;
    while (slice_split(&rest, '.', &name)) {
        char member[64];
        snprintf(member, sizeof(member), "%.*s", SLICE_ARG(name));
        struct slice first_element;
        struct scan_members elements = scan_members(value);
        if (scan_type(value) == SCAN_ARRAY && scan_next_element(&elements, &first_element))
            value = first_element;
        value = scan_member(value, member);
    }
    return scan_string(value, out);
}
