/* revocation.h - what is open with a credential that has ended, ends too: sockets, streams,
 * held polls and dequeues, within two seconds. */
#pragma once

struct api;
struct revocation;

struct revocation *revocation_create(struct api *api);
/* NULL is fine. */
void revocation_destroy(struct revocation *revocation);
