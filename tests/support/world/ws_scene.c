/* ws_scene.c - accepts each upgrade, holds /wait, and counts what happens. */
#include "tests/support/world/ws_scene.h"

#include "tests/support/world/unit.h"

static void on_message(struct ws *ws, struct slice message)
{
    struct ws_scene *scene = ws_owner(ws);
    (void)message;
    scene->messages++;
    if (scene->on_message)
        scene->on_message(scene, ws);
}

static void on_drained(struct ws *ws)
{
    struct ws_scene *scene = ws_owner(ws);
    assert_false(scene->sending);
    assert_int_equal(ws_unsent(ws), 0);
    scene->drained++;
}

static void on_closed(struct ws *ws)
{
    struct ws_scene *scene = ws_owner(ws);
    assert_false(scene->sending);
    scene->closed++;
    if (scene->ws == ws)
        scene->ws = NULL;
}

const struct ws_ops ws_scene_ops = { .on_message = on_message,
                                     .on_drained = on_drained,
                                     .on_closed = on_closed };

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    (void)x;
}

static void on_request(void *owner, struct exchange *x)
{
    struct ws_scene *scene = owner;
    bool trusted = !slice_is(x->path, "/stranger");
    scene->opened++;
    if (slice_is(x->path, "/wait")) {
        scene->waiting = x;
        return;
    }
    scene->ws = ws_accept(x, NULL, &ws_scene_ops, scene);
    if (scene->ws && trusted)
        ws_trust(scene->ws);
}

static void on_gone(void *owner, struct exchange *x)
{
    struct ws_scene *scene = owner;
    assert_ptr_equal(scene->waiting, x);
}

void ws_scene_open(struct ws_scene *scene, struct server_options options)
{
    options.handler =
        (struct http_handler){ on_head, NULL, on_request, on_gone, NULL, NULL };
    options.owner = scene;
    *scene = (struct ws_scene){ 0 };
    net_world_open(&scene->world, options);
}

void ws_scene_say(struct ws_scene *scene, struct peer *peer, unsigned char first,
                  const char *text)
{
    struct buf frame = { 0 };
    ws_peer_add_frame(&frame, first, slice_of(text));
    peer_send(&scene->world, peer, buf_slice(&frame));
    buf_finish(&frame);
}

bool ws_scene_send(struct ws_scene *scene, struct bytes *frame)
{
    scene->sending = true;
    bool sent = ws_send(scene->ws, &frame, 1);
    scene->sending = false;
    return sent;
}

struct bytes *ws_scene_big_frame(size_t len)
{
    struct bytes *payload = bytes_create_empty(len);
    memset(payload->data, '-', len);
    struct bytes *frame = ws_frame(bytes_slice(payload), false);
    bytes_unref(payload);
    return frame;
}

bool ws_scene_has_closed(void *owner)
{
    return ((struct ws_scene *)owner)->closed > 0;
}

bool ws_scene_ends_with(const struct peer *peer, const char *bytes, size_t len)
{
    return peer->got.len >= len &&
           memcmp(peer->got.ptr + peer->got.len - len, bytes, len) == 0;
}
