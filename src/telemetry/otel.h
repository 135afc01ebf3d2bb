/* otel.h - where workers send their spans and logs. */
#pragma once

#include "call/route.h"

/* The address for an environment's workers, behind "http://host": it says whose telemetry
 * it is, because what is sent there carries no credential. */
void otel_add_path(struct buf *out, const struct account *account);

/* Taken and thrown away: what names no environment, and metrics. */
route_fn otel_discard;
