/* trace_node.h - a trace's event as a node of its tree. */
#pragma once

#include "base/slice.h"

enum { TRACE_NODE_NONE = -1 };

/* An event's members as raw JSON, found in one scan, and its place in the tree. */
struct trace_node {
    struct slice id, parent; /* without quotes */
    struct slice message, at, ns, level, attempt, version, properties, events;
    bool error, partial;
    int depth, above, first, last, next; /* parent, children and sibling, by index */
};

/* Reads the members of an event. The node points into json. */
void trace_node_read(struct trace_node *node, struct slice json);
