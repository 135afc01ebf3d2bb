/* run_await.h - the run that a call shows, read when it has ended if ?wait= says so. */
#pragma once

#include "api/request/held_call.h"

/* Embedded by the operation. */
struct run_await {
    struct api_call *call;
    struct run_read read;
    struct held_call held;
    void (*done)(struct run_await *await, enum err status);
};

/* Begins to read the run of the path; done comes later, once. OK: await->read has a run that
 * the caller may read. Else the call is held_call_refuse's to answer. Returns ERR_INVALID when
 * ?wait= is not well-formed. */
enum err run_await_begin(struct api_call *call, struct run_await *await,
                         void (*done)(struct run_await *await, enum err status));
