/* render.h - renders a run as a row for one view, whole or only what changed.
 *
 *     [runId, version, {changed fields}]        delta: absolute values, null: cleared
 *     [runId, version, {all fields}, 1]         whole
 *     [runId, version, null, 2]                 it has left a live list
 *
 * The fields of a row and their values are collected first, then one of two encoders writes
 * them. In JSON, payload, output, metadata and error are the user's bytes. In msgpack they
 * are a str with their JSON text, and times are timestamps (type -1). */
#pragma once

#include "base/rope.h"
#include "core/wire/view.h"
#include "runcast/run.h"

/* Each of these appends one row. In the buffer of a rope, long values are references. */
void render_whole(const struct view *view, const struct run *run, struct buf *out);

/* Appends exactly the fields that differ, for a client that has `before`. status and
 * updatedAt are always in it. Payload and tags, metadata, output and error are compared
 * only if their rev has moved, so a packet that is not in memory is not mistaken for a
 * cleared one. If whole_rev has moved, the caller must use render_whole instead. */
void render_delta(const struct view *view, const struct run *before,
                  const struct run *after, struct buf *out);

/* Appends what a client that had everything at base now needs. The row is whole if
 * whole_rev > base or base is 0. Otherwise it has the small fields that can change (null
 * where unset), and metadata, output and error if they changed after base. */
void render_since(const struct view *view, const struct run *run, uint64_t base,
                  struct buf *out);

/* Appends a row stating that the run has left the client's list. */
void render_left(const struct view *view, const char *id, uint32_t version,
                 struct buf *out);

/* Appends the value of a packet as JSON text: for SuperJSON its json member, untouched; for
 * text a JSON string. Returns false if there is no value, as for application/store. Content
 * that is not JSON although its type says so becomes a string. type absent:
 * application/json. */
bool render_packet(struct bytes *content, struct slice type, struct buf *out);
