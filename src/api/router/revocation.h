/* revocation.h - closes what an ended credential still has open, within two seconds.
 *
 * That means sockets, streams, held polls and held dequeues. */
#pragma once

struct api;
struct revocation;

struct revocation *revocation_create(struct api *api);
/* Ignores NULL. */
void revocation_destroy(struct revocation *revocation);
