/* tenant_quotas.c - creates the quota of an organization at its first request. */
#include "supervisor/runners/tenant_quotas.h"

#include <string.h>

#include "base/mem.h"
#include "supervisor/gateway_client/run_message.h"

enum { SHARES = 4 };

struct tenant_quota {
    struct quota quota;
    char organization[MESSAGE_ID_MAX];
};

static struct slice key_of(const void *value)
{
    return slice_of(((const struct tenant_quota *)value)->organization);
}

void tenant_quotas_init(struct tenant_quotas *quotas, size_t limit)
{
    *quotas = (struct tenant_quotas){ .all.limit = limit };
    table_init(&quotas->quotas, key_of);
}

void tenant_quotas_finish(struct tenant_quotas *quotas)
{
    size_t at = 0;
    for (void *own; (own = table_next(&quotas->quotas, &at));)
        free(own);
    table_finish(&quotas->quotas);
}

struct quota *tenant_quotas_of(struct tenant_quotas *quotas, struct slice organization)
{
    struct tenant_quota *own = table_find(&quotas->quotas, organization);
    if (!own) {
        assert(organization.len < sizeof(own->organization));
        own = mem_new(struct tenant_quota);
        own->quota =
            (struct quota){ .limit = quotas->all.limit / SHARES, .outer = &quotas->all };
        memcpy(own->organization, organization.ptr, organization.len);
        table_insert(&quotas->quotas, own);
    }
    return &own->quota;
}
