/* render.h - a run as a row, whole or changed, for one view.
 *
 *     [runId, version, {changed fields}]        delta: absolute values, null: cleared
 *     [runId, version, {all fields}, 1]         whole
 *     [runId, version, null, 2]                 it has left a live list
 *
 * A row's fields are collected first (which, and their values), then written by one of two
 * encoders. JSON: payload, output, metadata, error are the user's bytes. msgpack: they are
 * a str holding their JSON text; times are timestamps (type -1). */
#pragma once

#include "base/rope.h"
#include "core/wire/view.h"
#include "runcast/run.h"

/* All of these append one row. Into the buffer of a rope long values come by reference. */
void render_whole(const struct view *view, const struct run *run, struct buf *out);

/* Exactly the fields that differ, for a client that has `before`; status and updatedAt come
 * always. Payload and tags, metadata, output and error only when their rev has moved, so a
 * packet that is not in memory is not taken for a cleared one. A change that moved
 * whole_rev goes whole instead: that is the caller's choice. */
void render_delta(const struct view *view, const struct run *before,
                  const struct run *after, struct buf *out);

/* What a client that was complete at base needs: whole if whole_rev > base
 * or base is 0; else the small fields that can change, null where unset, and metadata,
 * output and error if they changed after base. */
void render_since(const struct view *view, const struct run *run, uint64_t base,
                  struct buf *out);

/* The run is no longer among those that the client is shown. */
void render_left(const struct view *view, const char *id, uint32_t version,
                 struct buf *out);

/* Appends the value of a packet as JSON text: of SuperJSON its json member, untouched; of text a
 * JSON string. False: there is none, as of application/store. Content that is not the JSON its
 * type says becomes a string. type absent: application/json. */
bool render_packet(struct bytes *content, struct slice type, struct buf *out);
