/* trace_node.c - reads the members of a trace event. */
#include "api/telemetry/trace_node.h"

#include "base/json/scan.h"

void trace_node_read(struct trace_node *node, struct slice json)
{
    struct scan_members all = scan_members(json);
    struct slice name, value;
    *node = (struct trace_node){ .above = TRACE_NODE_NONE,
                                 .first = TRACE_NODE_NONE,
                                 .last = TRACE_NODE_NONE,
                                 .next = TRACE_NODE_NONE };
    const struct {
        const char *name;
        struct slice *value;
    } fields[] = {
        { "spanId", &node->id },
        { "parentId", &node->parent },
        { "message", &node->message },
        { "at", &node->at },
        { "ns", &node->ns },
        { "level", &node->level },
        { "attemptNumber", &node->attempt },
        { "workerVersion", &node->version },
        { "properties", &node->properties },
        { "events", &node->events },
    };
    while (scan_next_member(&all, &name, &value)) {
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            if (slice_is(name, fields[i].name))
                *fields[i].value = value;
        node->error |= slice_is(name, "isError");
        node->partial |= slice_is(name, "isPartial");
    }
    node->id = scan_unquoted(node->id);
    node->parent = scan_unquoted(node->parent);
}
