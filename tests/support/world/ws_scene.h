/* ws_scene.h - a WebSocket server whose handler notes its events. */
#pragma once

#include "net/http/ws_conn.h"
#include "tests/support/world/ws_peer.h"

/* First bytes of frames. */
enum {
    TEXT = 0x81,
    TEXT_BEGIN = 0x01,
    GO_ON = 0x00,
    END = 0x80,
    CLOSE = 0x88,
    PING = 0x89,
    PONG = 0x8A,
};

struct ws_scene {
    struct net_world world;
    struct ws *ws;            /* the newest WebSocket; NULL: closed */
    struct exchange *waiting; /* the request for /wait, which the test answers */
    unsigned opened, closed, messages, drained;
    unsigned late;   /* messages that were handled when the turn's time was used up */
    unsigned waited; /* messages handled while others waited */
    bool sending;    /* inside ws_send: no callback may be called */
    void (*on_message)(struct ws_scene *scene, struct ws *ws);
};

extern const struct ws_ops ws_scene_ops;

void ws_scene_open(struct ws_scene *scene, struct server_options options);

/* Sends a frame of the peer. */
void ws_scene_say(struct ws_scene *scene, struct peer *peer, unsigned char first,
                  const char *text);

/* Returns the result of ws_send for the newest WebSocket. */
bool ws_scene_send(struct ws_scene *scene, struct bytes *frame);

/* Makes a frame larger than the kernel accepts at once. */
struct bytes *ws_scene_big_frame(size_t len);

/* A world_condition. */
bool ws_scene_has_closed(void *owner);

/* Returns true if what the peer has received ends with these bytes. */
bool ws_scene_ends_with(const struct peer *peer, const char *bytes, size_t len);
