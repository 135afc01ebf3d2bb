/* members.h - the members of JSON objects: written one by one, read from our own documents.
 *
 *   {                        buf_add_char(&out, '{');
 *   "id":"run_x"             members_add_text(&out, "id", slice_of(run->id));
 *   ,"ttl":"1h"              members_add_text(&out, "ttl", bytes_slice(run->ttl));
 *
 * The comma comes by itself: before every member but the first of its object. A name is
 * ours and needs no escapes. What clients send is read with scan.h or jansson, which say
 * what is wrong with it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* The name and its colon; the value is the caller's to add. */
void members_add_name(struct buf *out, const char *name);

/* An absent text is left out; an empty one is there. */
void members_add_text(struct buf *out, const char *name, struct slice text);

/* The same of shared bytes, which a rope refers to when they are long; NULL is left out. */
void members_add_bytes(struct buf *out, const char *name, struct bytes *text);

void members_add_number(struct buf *out, const char *name, int64_t number);
void members_add_bool(struct buf *out, const char *name, bool value);

/* As ISO 8601; 0 is left out. */
void members_add_time(struct buf *out, const char *name, int64_t unix_ms);

/* A value that is JSON already; an absent one is left out. */
void members_add_json(struct buf *out, const char *name, struct slice json);
void members_add_json_bytes(struct buf *out, const char *name, struct bytes *json);

/* "name":["a","b"]. */
void members_add_texts(struct buf *out, const char *name, struct bytes *const *texts,
                       size_t count);

/* Decoded; NULL when there is no such member, or it is no string. */
struct bytes *members_text(struct slice object, const char *name);

/* False when there is no such member, or it is no whole number. */
bool members_number(struct slice object, const char *name, int64_t *number);

bool members_is_true(struct slice object, const char *name);

/* The raw values of several members, in one walk; those that are not there stay absent. */
void members_find(struct slice object, const char *const *names, size_t count,
                  struct slice *values);

/* The same of what a stranger sends: false as soon as there are more members than most. */
bool members_find_few(struct slice object, size_t most, const char *const *names,
                      size_t count, struct slice *values);

/* The text of a value that is no member, as an element of an array is. */
struct bytes *members_text_of(struct slice value);
