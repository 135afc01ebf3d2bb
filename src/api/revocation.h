/* revocation.h - what is open with a credential that has ended, ends too: sockets, streams,
 * held polls and dequeues, within two seconds. */
#pragma once

struct api;
struct ended;

struct ended *ended_create(struct api *api);
/* NULL is fine. */
void ended_destroy(struct ended *ended);
