/* subscribing.c - views, positions and tokens of subscribers. */
#include "api/realtime/subscribing.h"

#include "api/request/hidden.h"
#include "api/request/unread.h"
#include "base/metrics.h"

struct view subscribing_view(const struct identity *identity,
                             const struct wire_message *hello)
{
    struct view wanted = { .skipped = hidden_fields(identity) & ~(uint32_t)FIELDS_ALWAYS };
    wanted.fields = hello && hello->has_fields ? hello->fields : FIELDS_DEFAULT;
    wanted.fields = (wanted.fields | FIELDS_ALWAYS) & ~wanted.skipped;
    wanted.vocabulary = hello && hello->vocabulary_b ? VOCABULARY_B : VOCABULARY_A;
    return wanted;
}

bool subscribing_may_resume(const struct environment *env, const struct wire_message *sub)
{
    if (!sub->has_from)
        return false;
    if (strcmp(sub->from_epoch, env->store->epoch)) {
        metric_add(M_RESUME_EPOCH, 1);
        return false;
    }
    if (sub->from_seq < env->purged || sub->from_seq > env->applied) {
        metric_add(M_RESUME_PURGED, 1);
        return false;
    }
    metric_add(M_RESUMED, 1);
    return true;
}

struct tag_list *subscribing_ignored(const struct api_call *call)
{
    struct slice names[IGNORED_NAMES_MAX], one;
    struct slice rest = buf_slice(&call->ignored.names);
    size_t count = 0;
    while (call->ignored.count && slice_split(&rest, ',', &one))
        names[count++] = slice_trim(one);
    return count ? tag_list_create(names, count) : NULL;
}

enum err subscribing_identify(struct api_call *call)
{
    struct slice token = http_header(call->x, "authorization");
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    if (!token.ptr)
        token = api_query(call, "token");
    if (!token.ptr)
        return OK;
    enum err refused = auth_identify(api_auth(call->api), token, call->x->peer, now,
                                     &call->identity, &call->why);
    if (refused)
        return refused;
    http_trust(call->x);
    if (!call->identity->account)
        return explain(
            &call->why, ERR_UNAUTHORIZED,
            "A personal access token does not name an environment; use a secret key or "
            "a public token");
    unread_report_branch(call, call->identity->account);
    return api_choose_branch(call->api, http_header(call->x, "x-trigger-branch"),
                             &call->identity, &call->why);
}
