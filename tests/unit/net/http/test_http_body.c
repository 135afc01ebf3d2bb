/* Request bodies that are read slowly or arrive slowly, and streams that are cut. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "tests/support/world/net_world.h"

enum { LARGE = 400 << 10, A_READ = 16 << 10 };

struct scene {
    struct net_world world; /* must be first */
    struct exchange *x;
    size_t came, longest; /* bytes of bodies; the longest piece */
    struct quota quota, answers;
    size_t kept, len; /* length of the beginning; of the complete body */
    bool pause, whole;
};

static void on_head(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    x->body_limit = 1 << 20;
    x->stream_body = !slice_starts(x->path, "/kept");
    x->body_keep = slice_is(x->path, "/kept/begin") ? 2 * (size_t)HTTP_BEGINNING : 0;
    x->body_quota = scene->quota.limit ? &scene->quota : NULL;
    x->answer_quota = &scene->answers;
    x->slow_body = slice_is(x->path, "/slow");
    if (slice_is(x->path, "/trusted"))
        http_trust(x);
}

static void on_body(void *owner, struct exchange *x, struct slice piece)
{
    struct scene *scene = owner;
    scene->x = x;
    scene->came += piece.len;
    if (piece.len > scene->longest)
        scene->longest = piece.len;
    if (scene->pause)
        http_body_pause(x);
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    scene->whole = true;
    scene->kept = x->body.len;
    scene->len = x->body_len;
    if (slice_is(x->path, "/long")) {
        struct bytes *body = bytes_create_empty(8 << 20);
        memset(body->data, '-', body->len);
        http_reply_shared(x, 200, (struct slice){ 0 }, body);
        bytes_unref(body);
        return;
    }
    if (!slice_is(x->path, "/stream")) {
        http_reply(x, 200, (struct slice){ 0 }, SLICE("thanks"));
        return;
    }
    http_stream_begin(x, 200, (struct slice){ 0 });
    http_stream_write(x, SLICE("some of it"));
    http_stream_cut(x);
}

static void on_gone(void *owner, struct exchange *x)
{
    (void)owner;
    http_reply(x, 499, (struct slice){ 0 }, (struct slice){ 0 });
}

static void open_scene(struct scene *scene, struct server_options options)
{
    *scene = (struct scene){ 0 };
    options.handler =
        (struct http_handler){ on_head, on_body, on_request, on_gone, NULL, NULL };
    options.owner = scene;
    net_world_open(&scene->world, options);
}

static bool has_come(void *owner)
{
    return ((struct scene *)owner)->came > 0;
}

static void paused_body_waits_and_arrives_complete(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    scene.pause = true;
    peer_open(&scene.world, &peer);
    char *body = mem_alloc(LARGE);
    memset(body, 'x', LARGE);
    struct buf text = { 0 };
    buf_print(&text, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", LARGE);
    buf_add(&text, (struct slice){ body, LARGE });
    peer_send(&scene.world, &peer, buf_slice(&text));
    net_world_until(&scene.world, has_come, &scene);
    size_t first = scene.came;
    for (int i = 0; i < 20; i++)
        net_world_turn(&scene.world);
    assert_int_equal(scene.came, first);
    assert_true(first <= A_READ);
    scene.pause = false;
    http_body_resume(scene.x);
    peer_await(&scene.world, &peer, "thanks");
    assert_int_equal(scene.came, LARGE);
    free(body);
    buf_finish(&text);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* It may arrive slowly from then on: it no longer takes memory budget from others. */
static void too_long_body_gives_back_its_memory_budget_at_once(void **state)
{
    static const struct {
        size_t sent, kept;
    } pieces[] = {
        { 2 * HTTP_BEGINNING, 2 * HTTP_BEGINNING },
        { 1, HTTP_BEGINNING },
        { 3 * HTTP_BEGINNING, HTTP_BEGINNING },
    };
    struct scene scene;
    struct peer peer;
    struct buf body = { 0 };
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    scene.quota.limit = 1 << 20;
    peer_open(&scene.world, &peer);
    memset(buf_reserve(&body, LARGE), 'x', LARGE);
    peer_send(&scene.world, &peer,
              SLICE("POST /kept/begin HTTP/1.1\r\nHost: a\r\n"
                    "Content-Length: 20481\r\n\r\n")); /* 5 * HTTP_BEGINNING + 1 */
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        peer_send(&scene.world, &peer, (struct slice){ body.ptr, pieces[i].sent });
        for (int turn = 0; turn < 20; turn++)
            net_world_turn(&scene.world);
        if (!scene.whole)
            assert_int_equal(scene.quota.used, pieces[i].kept);
    }
    peer_await(&scene.world, &peer, "thanks");
    assert_int_equal(scene.kept, HTTP_BEGINNING);
    assert_int_equal(scene.len, 5 * HTTP_BEGINNING + 1);
    assert_int_equal(scene.quota.used, 0);
    buf_finish(&body);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void send_body(struct scene *scene, struct peer *peer, size_t len)
{
    struct buf text = { 0 };
    buf_print(&text, "POST /trusted HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
              len);
    memset(buf_reserve(&text, len), '[', len);
    text.len += len;
    peer_send(&scene->world, peer, buf_slice(&text));
    buf_finish(&text);
}

/* A route may spend ten nanoseconds on a byte: long pieces would take a whole turn each. */
static void a_turn_reads_a_little_of_each_body(void **state)
{
    struct scene scene;
    struct peer peers[2];
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    for (int i = 0; i < 2; i++) {
        peer_open(&scene.world, &peers[i]);
        send_body(&scene, &peers[i], LARGE);
    }
    size_t most = 0, before = scene.came;
    while (scene.came < 2 * (size_t)LARGE) {
        uv_run(&scene.world.uv, UV_RUN_NOWAIT);
        most = scene.came - before > most ? scene.came - before : most;
        before = scene.came;
    }
    assert_in_range(scene.longest, 1, A_READ);
    /* Both bodies; TLS records are sent one by one, and some are read in between. */
    assert_in_range(most, net_world_is_secure() ? 1 : A_READ, 2 * A_READ);
    for (int i = 0; i < 2; i++)
        peer_close(&peers[i]);
    net_world_close(&scene.world);
}

static void disconnect_during_a_paused_body_is_noticed(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    scene.pause = true;
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf"));
    net_world_until(&scene.world, has_come, &scene);
    peer_close(&peer);
    net_world_close(&scene.world);
    assert_false(scene.whole);
}

/* The other requests, which must not be slow, show that the time limit has passed. */
static void slow_body_outlasts_the_timeout_of_others(void **state)
{
    struct scene scene;
    struct peer slow, other;
    (void)state;
    open_scene(&scene, (struct server_options){ .body_timeout_ms = 30 });
    peer_open(&scene.world, &slow);
    peer_send(&scene.world, &slow,
              SLICE("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"));
    net_world_turn(&scene.world);
    for (int i = 0; i < 3; i++) {
        peer_open(&scene.world, &other);
        peer_send(&scene.world, &other,
                  SLICE("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab"));
        peer_await(&scene.world, &other, " 408 ");
        peer_close(&other);
        peer_send(&scene.world, &slow, SLICE("z"));
    }
    assert_false(scene.whole);
    peer_send(&scene.world, &slow, SLICE("z"));
    peer_await(&scene.world, &slow, "thanks");
    peer_close(&slow);
    net_world_close(&scene.world);
}

/* Bodies that may be slow otherwise; they began before the drain or during it. */
static void a_drain_does_not_wait_for_a_body_that_does_not_grow(void **state)
{
    static const char *const heads[] = {
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab",
        "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab",
        "POST /kept HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab",
    };
    struct scene scene;
    struct peer peers[3];
    (void)state;
    open_scene(&scene, (struct server_options){ .drain_grace_ms = 30 });
    for (size_t i = 0; i < 3; i++) {
        if (i == 2)
            server_drain(scene.world.server);
        peer_open(&scene.world, &peers[i]);
        peer_send(&scene.world, &peers[i], slice_of(heads[i]));
        net_world_turn(&scene.world);
    }
    assert_false(server_is_idle(scene.world.server));
    for (size_t i = 0; i < 3; i++) {
        peer_await(&scene.world, &peers[i], " 408 ");
        peer_close(&peers[i]);
    }
    net_world_close(&scene.world);
    assert_false(scene.whole);
}

static void drain_waits_for_a_body_that_grows(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .drain_grace_ms = 60 * 1000 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab"));
    net_world_turn(&scene.world);
    server_drain(scene.world.server);
    peer_send(&scene.world, &peer, SLICE("cd"));
    peer_await(&scene.world, &peer, "thanks");
    peer_close(&peer);
    net_world_close(&scene.world);
}

static bool is_idle(void *owner)
{
    return server_is_idle(((struct scene *)owner)->world.server);
}

/* One response began before the drain, the other during it. */
static void drain_does_not_wait_for_unauthenticated_peers_that_do_not_read(void **state)
{
    struct scene scene;
    struct peer early, late;
    (void)state;
    open_scene(&scene, (struct server_options){ .drain_grace_ms = 30 });
    peer_open(&scene.world, &early);
    peer_open(&scene.world, &late);
    peer_send(&scene.world, &early, SLICE("GET /long HTTP/1.1\r\nHost: a\r\n\r\n"));
    net_world_turn(&scene.world);
    assert_false(is_idle(&scene));
    server_drain(scene.world.server);
    peer_send(&scene.world, &late, SLICE("GET /long HTTP/1.1\r\nHost: a\r\n\r\n"));
    net_world_turn(&scene.world);
    net_world_until(&scene.world, is_idle, &scene);
    peer_close(&early);
    peer_close(&late);
    net_world_close(&scene.world);
}

/* A body that was rejected, abandoned or completed gives its memory budget back. */
static void request_bodies_share_a_memory_budget(void **state)
{
    static const char *const paths[] = { "/", "/kept" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        struct peer first, second, third;
        char head[80];
        int len =
            snprintf(head, sizeof(head),
                     "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n", paths[i]);
        struct slice request = { head, (size_t)len };
        open_scene(&scene, (struct server_options){ 0 });
        scene.quota.limit = 10;
        peer_open(&scene.world, &first);
        peer_open(&scene.world, &second);
        peer_open(&scene.world, &third);
        peer_send(&scene.world, &first, request);
        peer_send(&scene.world, &first, SLICE("sixbyt"));
        peer_send(&scene.world, &second, request);
        peer_send(&scene.world, &second, SLICE("5byte"));
        peer_await(&scene.world, &second, " 503 ");
        peer_await_end(&scene.world, &second);
        assert_true(peer_has(&second, "use all memory of your share"));
        assert_int_equal(scene.quota.used, 6);

        peer_close(&first);
        peer_send(&scene.world, &third, request);
        peer_send(&scene.world, &third, SLICE("allofit!"));
        peer_await(&scene.world, &third, "thanks");
        assert_int_equal(scene.quota.used, 0);
        peer_close(&second);
        peer_close(&third);
        net_world_close(&scene.world);
    }
}

static void response_counts_against_the_budget_until_it_is_read(void **state)
{
    struct scene scene;
    struct peer reader, leaver;
    struct slice request = SLICE("GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &reader);
    peer_open(&scene.world, &leaver);
    peer_send(&scene.world, &reader, request);
    while (!scene.answers.used)
        net_world_turn(&scene.world);
    size_t of_one = scene.answers.used;
    assert_in_range(of_one, 1, 8 << 20);
    peer_send(&scene.world, &leaver, request);
    while (scene.answers.used <= of_one)
        net_world_turn(&scene.world);
    peer_close(&leaver);
    while (scene.answers.used) {
        peer_read(&reader);
        net_world_turn(&scene.world);
    }
    assert_false(reader.ended);
    peer_close(&reader);
    net_world_close(&scene.world);
}

static void truncated_stream_has_no_final_chunk(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "a\r\nsome of it\r\n"));
    assert_false(peer_has(&peer, "0\r\n\r\n"));
    peer_close(&peer);
    net_world_close(&scene.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paused_body_waits_and_arrives_complete),
        cmocka_unit_test(too_long_body_gives_back_its_memory_budget_at_once),
        cmocka_unit_test(a_turn_reads_a_little_of_each_body),
        cmocka_unit_test(disconnect_during_a_paused_body_is_noticed),
        cmocka_unit_test(slow_body_outlasts_the_timeout_of_others),
        cmocka_unit_test(a_drain_does_not_wait_for_a_body_that_does_not_grow),
        cmocka_unit_test(drain_waits_for_a_body_that_grows),
        cmocka_unit_test(drain_does_not_wait_for_unauthenticated_peers_that_do_not_read),
        cmocka_unit_test(request_bodies_share_a_memory_budget),
        cmocka_unit_test(response_counts_against_the_budget_until_it_is_read),
        cmocka_unit_test(truncated_stream_has_no_final_chunk),
    };
    return cmocka_run_group_tests_name("http body", tests, NULL, NULL);
}
