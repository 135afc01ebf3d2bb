/* run_await.h - reads the run that a call names; with ?wait=, once that run has ended. */
#pragma once

#include "api/request/held_call.h"

/* Embedded by the operation. */
struct run_await {
    struct api_call *call;
    struct run_read read;
    struct held_call held;
    void (*done)(struct run_await *await, enum err status);
};

/* Begins to read the run in the path. Calls done once, later. With OK, await->read has a
 * run that the caller may read; otherwise reply with held_call_refuse. Returns ERR_INVALID
 * if ?wait= is malformed; done is then not called. */
enum err run_await_begin(struct api_call *call, struct run_await *await,
                         void (*done)(struct run_await *await, enum err status));
