/* openapi_admin.c - the operations of the gateway itself. */
#include "call/operation.h"

const struct operation admin_operations[] = {
    { .method = HTTP_GET_,
      .path = "/healthz",
      .id = "health",
      .summary = "The process answers",
      .reply = "{status: 'ok'}" },
    { .method = HTTP_GET_,
      .path = "/readyz",
      .id = "readiness",
      .summary = "Requests are taken; else 503 with reasons",
      .reply = "{status: string, reasons: string[]}" },
    { .method = HTTP_GET_,
      .path = "/metrics",
      .id = "metrics",
      .summary = "Metrics in the text form of Prometheus, for the metrics token",
      .reply = "string",
      .gives = "text/plain",
      .also = "401" },
    { .method = HTTP_GET_,
      .path = "/openapi.json",
      .id = "openapi",
      .summary = "This document",
      .reply = "{openapi: string, ...}" },
    { .method = HTTP_GET_,
      .path = "/",
      .id = "page",
      .summary = "For browsers: that there is no dashboard, and how to look at a run",
      .reply = "string",
      .gives = "text/html" },
    { .method = HTTP_GET_,
      .path = "/projects/v3/{path}",
      .id = "page_of_project",
      .summary = "The same page, where links of the CLI lead",
      .reply = "string",
      .gives = "text/html" },
    { 0 },
};

const struct schema admin_schemas[] = {
    { 0 },
};
