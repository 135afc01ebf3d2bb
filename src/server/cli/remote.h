/* remote.h - calls from subcommands to a gateway's API, with a secret key.
 *
 *   remote_open ─► remote_ask, remote_upload … ─► remote_close
 *
 * All of this blocks. As in the official CLI, a call is tried up to five times, with one
 * request id by which the gateway recognizes repetitions. */
#pragma once

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"

struct remote;

struct remote_options {
    const char *url;
    const char *ca_file; /* additional trusted certificates; "": none */
    const char *key;
    const char *branch; /* of a preview environment; NULL: none */
};

struct remote_call {
    const char *method; /* NULL: GET */
    const char *target;
    struct slice body; /* JSON; absent: none */

    int status;           /* HTTP status; 0: the gateway was not reached */
    struct bytes *answer; /* valid JSON, or NULL */
    struct buf refusal;   /* why the call failed; lines of any length */
};

/* Borrows the key. ERR_INVALID: the URL or the certificates are invalid. */
enum err remote_open(const struct remote_options *options, struct remote **remote,
                     struct failure *why);
/* Ignores NULL. */
void remote_close(struct remote *remote);

/* Returns true if the status is 2xx; otherwise call->refusal says why. */
bool remote_ask(struct remote *remote, struct remote_call *call);

/* Sends a file to a URL that the gateway has returned, once and without the key. */
bool remote_upload(struct remote *remote, struct remote_call *call, int file, uint64_t len,
                   struct slice content_type);

/* Sleeps. */
void remote_pause(unsigned ms);

/* Frees the results; the call may be made again. */
void remote_call_finish(struct remote_call *call);
