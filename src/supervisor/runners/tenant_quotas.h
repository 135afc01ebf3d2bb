/* tenant_quotas.h - limits the memory for request bodies, per organization and in total.
 *
 *   body from a controller ─► quota of its organization ─► outer: total quota
 *
 * Quotas are freed only at the end, because requests point to them, and because a machine
 * executes runs of only a few organizations. */
#pragma once

#include "base/quota.h"
#include "base/table.h"

struct tenant_quotas {
    struct quota all;
    struct table quotas; /* struct tenant_quota, by organization */
};

/* limit: bytes in total; each organization may use a quarter of it. */
void tenant_quotas_init(struct tenant_quotas *quotas, size_t limit);
void tenant_quotas_finish(struct tenant_quotas *quotas);

struct quota *tenant_quotas_of(struct tenant_quotas *quotas, struct slice organization);
