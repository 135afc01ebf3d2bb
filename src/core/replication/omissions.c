/* omissions.c - one range of numbers for each of a few environments. */
#include "core/replication/omissions.h"

static struct repl_passed *find(struct omissions *omissions, uint32_t env)
{
    for (size_t i = 0; i < omissions->count; i++) {
        if (omissions->list[i].env == env)
            return &omissions->list[i];
    }
    return NULL;
}

bool omissions_add(struct omissions *omissions, const struct repl_passed *passed)
{
    struct repl_passed *known = find(omissions, passed->env);
    if (known && known->to + 1 == passed->from) {
        known->to = passed->to;
        return true;
    }
    if (known || omissions->count == OMISSIONS_MAX)
        return false;
    omissions->list[omissions->count++] = *passed;
    return true;
}

bool omissions_precede(const struct omissions *omissions, const struct repl_frame *frame)
{
    bool is_of_run = frame->kind == REPL_CHANGE || frame->kind == REPL_BEFORE;
    if (!is_of_run)
        return omissions->count;
    for (size_t i = 0; i < omissions->count; i++) {
        if (omissions->list[i].env == frame->run.env)
            return true;
    }
    return false;
}
