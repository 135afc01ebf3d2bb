/* ended.h - what is open with a credential that has ended, ends too: sockets, streams,
 * held polls and dequeues, within two seconds. */
#pragma once

/* What a socket and an event stream are told. */
static const char ended_reason[] = "the credential was revoked";

struct api;
struct ended;

struct ended *ended_create(struct api *api);
/* NULL is fine. */
void ended_destroy(struct ended *ended);
