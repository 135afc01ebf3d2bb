/* members.h - writes members of JSON objects, and reads those of our own documents.
 *
 *   {                        buf_add_char(&out, '{');
 *   "id":"run_x"             members_add_text(&out, "id", slice_of(run->id));
 *   ,"ttl":"1h"              members_add_text(&out, "ttl", bytes_slice(run->ttl));
 *
 * The comma is written before every member but the first of its object. Names are ours and
 * need no escapes. For JSON from clients, use scan.h or jansson, which report its
 * errors. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* Writes the name and its colon; the caller appends the value. */
void members_add_name(struct buf *out, const char *name);

/* Leaves out an absent text, but not an empty one. */
void members_add_text(struct buf *out, const char *name, struct slice text);

/* The same for shared bytes, to which a rope refers if they are long. Leaves out NULL. */
void members_add_bytes(struct buf *out, const char *name, struct bytes *text);

void members_add_number(struct buf *out, const char *name, int64_t number);
void members_add_bool(struct buf *out, const char *name, bool value);

/* Writes the time as ISO 8601. Leaves out 0. */
void members_add_time(struct buf *out, const char *name, int64_t unix_ms);

/* Writes a value that is JSON already. Leaves out an absent one. */
void members_add_json(struct buf *out, const char *name, struct slice json);
void members_add_json_bytes(struct buf *out, const char *name, struct bytes *json);

/* Writes "name":["a","b"]. */
void members_add_texts(struct buf *out, const char *name, struct bytes *const *texts,
                       size_t count);

/* Returns the decoded text; NULL if the member is missing or not a string. */
struct bytes *members_text(struct slice object, const char *name);

/* Returns false if the member is missing or not a whole number. */
bool members_number(struct slice object, const char *name, int64_t *number);

bool members_is_true(struct slice object, const char *name);

/* Finds the raw values of several members in one walk; missing ones are absent. */
void members_find(struct slice object, const char *const *names, size_t count,
                  struct slice *values);

/* The same for untrusted objects: returns false once there are more than `most` members. */
bool members_find_few(struct slice object, size_t most, const char *const *names,
                      size_t count, struct slice *values);

/* Returns the text of a value that need not be a member, such as an array's element. */
struct bytes *members_text_of(struct slice value);
