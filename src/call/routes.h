/* routes.h - the tables of the front door, one per file; dispatch.c looks them up in order. */
#pragma once

#include "call/call.h"

extern const struct route admin_routes[];   /* health, readiness, metrics */
extern const struct route tasks_routes[];   /* trigger */
extern const struct route batches_routes[]; /* the three batch calls, retrieve, results */
extern const struct route runs_routes[];    /* list, retrieve, cancel, replay, … */
extern const struct route tokens_routes[];  /* auth/jwt, auth/jwt/claims, public-tokens */
extern const struct route packets_routes[]; /* presigned URLs, and the packets themselves */
extern const struct route workers_routes[]; /* what `trigger dev` calls */
extern const struct route polls_routes[];   /* the long poll of the SDKs */
extern const struct route streams_routes[]; /* what tasks stream while they run */
extern const struct route events_routes[];  /* runs.v1 as text/event-stream */
extern const struct route envvars_routes[]; /* environment variables */
extern const struct route socket_routes[];  /* runs.v1 over WebSocket */
extern const struct route otel_routes[];    /* telemetry of workers */
extern const struct route traces_routes[];  /* spans and logs of a run */
extern const struct route notifier_routes[];   /* which runs a worker must look at */
extern const struct route deployed_routes[];   /* what workers outside a session call */
extern const struct route timezones_routes[];  /* the names of the time zones */
extern const struct route schedules_routes[];  /* what fires by the clock */
extern const struct route queues_routes[];     /* list, pause, limits of queues */
extern const struct route projects_routes[];   /* organizations, projects, branches */
extern const struct route bulk_routes[];       /* one action on many runs */
extern const struct route waitpoints_routes[]; /* tokens, and runs that wait */
extern const struct route page_routes[];       /* for browsers, and links of the CLI */
