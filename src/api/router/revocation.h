/* revocation.h - ends what a credential that has ended still has open, within two seconds.
 *
 * That is sockets, streams, held polls and held dequeues. */
#pragma once

struct api;
struct revocation;

struct revocation *revocation_create(struct api *api);
/* Ignores NULL. */
void revocation_destroy(struct revocation *revocation);
