/* telemetry_path.h - where the workers of an environment send their spans and logs. */
#pragma once

#include "accounts/accounts.h"
#include "base/buf.h"

/* The path behind "http://host": it is signed and says whose telemetry it is, because what is
 * sent there carries no credential. */
void telemetry_path_add(struct buf *out, const struct account *account);
