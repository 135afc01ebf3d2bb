/* seen_parse.h - parses one message from any of three encodings. */
#pragma once

#include "seen.h"

/* Adds a row to the message; it is valid until the next call. */
struct seen_row *seen_add_row(struct seen_message *message);

/* Returns the index of the tracked run, or RUN_UNKNOWN. */
uint32_t seen_find_run(const struct seen *seen, struct slice id);

enum seen_op seen_op_of(struct slice name);

/* Keeps the epoch of a welcome, unless it is too long. */
void seen_keep_epoch(struct seen_message *message, struct slice epoch);

/* Fill in a message whose members are cleared; return false if it is malformed. */
bool seen_parse_json(const struct seen *seen, struct slice text,
                     struct seen_message *message);
bool seen_parse_msgpack(const struct seen *seen, struct slice text,
                        struct seen_message *message);
/* Parses the body of a long poll as SEEN_PATCH, with "more" unless it is up to date. */
bool seen_parse_shape(const struct seen *seen, struct slice text,
                      struct seen_message *message);
