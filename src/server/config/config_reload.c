/* config_reload.c - applies settings that may change at run time: all or none. */
#include <string.h>

#include "server/config/config_value.h"

static bool is_reloadable(enum config_setting which)
{
    switch (which) {
    case SETTING_allow_origin:
    case SETTING_tls_cert:
    case SETTING_tls_key:
    case SETTING_log_level:
    case SETTING_log_format:
    case SETTING_log_requests:
    case SETTING_connections:
    case SETTING_connections_per_address:
    case SETTING_realtime_connections:
    case SETTING_rate_limit:
    case SETTING_storage_quota:
    case SETTING_batch_memory:
    case SETTING_subscriptions:
    case SETTING_schedules:
    case SETTING_branches:
    case SETTING_user_projects:
    case SETTING_user_organizations:
    case SETTING_dequeue_wait_ms:
    case SETTING_drain_timeout_ms: return true;
    default: return false;
    }
}

static bool is_pointer(enum config_setting which)
{
    enum setting_type type = config_settings[which].type;
    return type == SETTING_IS_TEXT || type == SETTING_IS_LIST || type == SETTING_IS_SECRET;
}

static size_t size_of(enum config_setting which)
{
    return is_pointer(which)                                ? sizeof(char *)
           : config_settings[which].type == SETTING_IS_FLAG ? sizeof(bool)
                                                            : sizeof(int64_t);
}

static void *field_of(struct config *config, enum config_setting which)
{
    return (char *)config + config_settings[which].offset;
}

static bool is_same(struct config *one, struct config *other, enum config_setting which)
{
    void *a = field_of(one, which), *b = field_of(other, which);
    return is_pointer(which) ? !strcmp(*(char **)a, *(char **)b)
                             : !memcmp(a, b, size_of(which));
}

static void swap(void *a, void *b, size_t size)
{
    char kept[sizeof(int64_t)];
    memcpy(kept, a, size);
    memcpy(a, b, size);
    memcpy(b, kept, size);
}

enum err config_take(struct config *config, struct config *fresh, struct failure *why)
{
    for (int i = 0; i < SETTING_COUNT; i++)
        if (!is_same(config, fresh, (enum config_setting)i) &&
            !is_reloadable((enum config_setting)i))
            return explain(why, ERR_INVALID,
                           "%s: a reload cannot change %s, so nothing was changed; restart "
                           "the gateway",
                           fresh->origins[i], config_settings[i].name);
    for (int i = 0; i < SETTING_COUNT; i++) {
        enum config_setting which = (enum config_setting)i;
        if (is_same(config, fresh, which))
            continue;
        swap(field_of(config, which), field_of(fresh, which), size_of(which));
        swap(&config->origins[i], &fresh->origins[i], sizeof(char *));
    }
    return OK;
}
