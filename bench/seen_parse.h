/* seen_parse.h - one message as the bench wants it, from any of three encodings. */
#pragma once

#include "seen.h"

/* Adds a row to the message; valid until the next. */
struct seen_row *seen_add_row(struct seen_message *message);

/* Which tracked run that is, or RUN_UNKNOWN. */
uint32_t seen_find_run(const struct seen *seen, struct slice id);

enum seen_op seen_op_of(struct slice name);

/* The epoch of a welcome; one that is too long is left out. */
void seen_keep_epoch(struct seen_message *message, struct slice epoch);

/* Fill in a message whose members are cleared; false: it is not what it should be. */
bool seen_parse_json(const struct seen *seen, struct slice text,
                     struct seen_message *message);
bool seen_parse_msgpack(const struct seen *seen, struct slice text,
                        struct seen_message *message);
/* The body of a long poll: SEEN_PATCH, with "more" as long as it is not up to date. */
bool seen_parse_shape(const struct seen *seen, struct slice text,
                      struct seen_message *message);
