/* ws_scene.h - a server of WebSockets whose handler notes what happens. */
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
    struct ws *ws;            /* the newest one; NULL: closed */
    struct exchange *waiting; /* the request for /wait, which is not answered by itself */
    unsigned opened, closed, messages, drained;
    unsigned late;   /* messages that were heard when the turn's time was over */
    unsigned waited; /* while others waited to be heard */
    bool sending;    /* inside ws_send: nothing may be called back */
    void (*on_message)(struct ws_scene *scene, struct ws *ws);
};

extern const struct ws_ops ws_scene_ops;

void ws_scene_open(struct ws_scene *scene, struct server_options options);

/* A frame of the peer. */
void ws_scene_say(struct ws_scene *scene, struct peer *peer, unsigned char first,
                  const char *text);

/* What ws_send returned for the newest WebSocket. */
bool ws_scene_send(struct ws_scene *scene, struct bytes *frame);

/* More than the kernel takes. */
struct bytes *ws_scene_big_frame(size_t len);

/* A world_condition. */
bool ws_scene_has_closed(void *owner);

/* What the peer has got ends with these bytes. */
bool ws_scene_ends_with(const struct peer *peer, const char *bytes, size_t len);
