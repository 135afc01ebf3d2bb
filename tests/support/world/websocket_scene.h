/* websocket_scene.h - a client's WebSocket and its server, which the test simulates.
 *
 * One at a time; its events are noted in `seen`. */
#pragma once

#include "net/http/ws_frame.h"
#include "net/http/ws_key.h"
#include "tests/support/world/client_world.h"

/* First bytes of frames. */
enum {
    TEXT = 0x81,
    TEXT_BEGIN = 0x01,
    BINARY = 0x82,
    GO_ON = 0x00,
    END = 0x80,
    CLOSE = 0x88,
    PING = 0x89,
    PONG = 0x8A,
};

struct seen {
    unsigned opened, closed;
    struct buf heard; /* T(text)B(binary) */
    enum err error;
    int status, code;
    char why[320], reason[128];
    void (*on_message)(void);
    unsigned late; /* messages that arrived when the turn's time was used up */
};

extern struct client_world world;
extern struct far far; /* the server's end; fd -1: none */
extern struct websocket *ws;
extern struct seen seen;
extern const struct websocket_ops play_ops;

/* Setup and teardown of each test. The teardown cuts the WebSocket if it is still open. */
int play_open(void **state);
int play_close(void **state);

/* A client_condition. */
bool play_has_opened(void *owner);

/* The URL is the world's. */
void play_begin(struct websocket_options options);

/* Waits for the client's request, and sends the response to its key. */
void play_read_key(char accept[WS_ACCEPT_LEN + 1]);

/* Accepts, with more header lines. */
void play_accept(const char *more);

/* Begins, reads the key and accepts. */
void play_connect(struct websocket_options options);

/* A frame of the server: not masked. */
void play_add_frame(struct buf *out, unsigned char first, struct slice payload);
void play_say(unsigned char first, const char *text);

/* Returns the client's frames, as T(text)B(..)O(pong)P(ping)X1000(reason); asserts that
 * every frame is masked. */
void play_print(struct buf *out);
void play_expect_said(char *text);
void play_expect_heard(char *text);
void play_expect_end(enum err error, const char *why);
