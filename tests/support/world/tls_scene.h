/* tls_scene.h - a server that uses TLS, and clients of it.
 *
 *   GET /        200 hello
 *   GET /wait    not answered: see tls_scene::waiting
 *   GET /long    200 with TLS_SCENE_LONG bytes, each derived from its position */
#pragma once

#include <openssl/ssl.h>

#include "tests/support/world/net_world.h"

enum { TLS_SCENE_LONG = 8 << 20 };

#define TLS_SCENE_GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

struct tls_scene {
    struct net_world world;
    SSL_CTX *clients; /* of clients that accept any certificate of the server */
    struct exchange *waiting;
    bool secure; /* the newest request came through TLS */
};

void tls_scene_open(struct tls_scene *scene);
void tls_scene_open_with(struct tls_scene *scene, struct server_options options,
                         struct listen_options listener);
void tls_scene_close(struct tls_scene *scene);

/* Connects, and performs the handshake. */
void tls_scene_open_peer(struct tls_scene *scene, struct peer *peer);

/* Requests /, and waits for the response. */
void tls_scene_expect_answer(struct tls_scene *scene, struct peer *peer);

/* Returns the byte of the long response at a position. */
char tls_scene_letter(size_t place);

/* Writes the first handshake bytes of a client into the buffer. */
struct slice tls_scene_hello(SSL_CTX *clients, char *room, int size);
