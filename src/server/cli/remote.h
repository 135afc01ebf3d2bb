/* remote.h - what subcommands ask of a gateway that may be anywhere, by its API and the secret
 * key of an environment.
 *
 *   remote_open ─► remote_ask, remote_upload … ─► remote_close
 *
 * The process does nothing else meanwhile: each call is waited for, and tried again as the
 * official CLI does, five times at most, under one id by which the gateway knows it again. */
#pragma once

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"

struct remote;

struct remote_options {
    const char *url;
    const char *ca_file; /* more certificates that are trusted; "": none */
    const char *key;
    const char *branch; /* of a preview environment; NULL: none */
};

struct remote_call {
    const char *method; /* NULL: GET */
    const char *target;
    struct slice body; /* JSON; absent: none */

    int status;           /* 0: the gateway could not be asked */
    struct bytes *answer; /* valid JSON, or NULL */
    struct buf refusal;   /* why there is none, in words; lines of any length */
};

/* Borrows the key. ERR_INVALID: the address or the certificates are wrong. */
enum err remote_open(const struct remote_options *options, struct remote **remote,
                     struct failure *why);
/* NULL is fine. */
void remote_close(struct remote *remote);

/* True: answered with 2xx. Else refusal says why not. */
bool remote_ask(struct remote *remote, struct remote_call *call);

/* Sends a file to an address that the gateway has given out, once and without the key. */
bool remote_upload(struct remote *remote, struct remote_call *call, int file, uint64_t len,
                   struct slice content_type);

/* Nothing happens for so long. */
void remote_pause(unsigned ms);

/* What it answered is freed; it may be asked again. */
void remote_call_finish(struct remote_call *call);
