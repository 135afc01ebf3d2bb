/* trigger_reading.h - the state of reading one set of options; private to trigger_*.c. */
#pragma once

#include "api/triggers/trigger_options.h"

struct trigger_reading {
    const struct trigger_source *source;
    const struct trigger_place *place;
    struct trigger *item;
    struct trigger_parent *parent;
    struct failure *why;
    struct buf text; /* the string last decoded by reading_text */
    /* JSON: names of limits, and gates, without brackets; read if the option is given */
    struct buf limits, gates;
    bool has_limits, has_gates;
    const char *name;
    /* raw JSON, read when all options are known */
    struct slice type, key, key_ttl, key_options, deployment, debounce;
    bool has_machine, has_queue; /* the options name one */
};

typedef enum err read_option_fn(struct trigger_reading *r, struct slice value);

struct option {
    const char *name;
    read_option_fn *read;
    bool is_alone; /* belongs to the whole batch; ignored in an item's options */
};

/* Options that runcast does not support; ends with a NULL name. */
extern const struct option trigger_undone[];

/* Reports an option as ignored. */
void reading_report(struct trigger_reading *r, struct slice key);

/* Reports the members of an object inside the options as ignored, except the known ones.
 * where: a prefix like "queue."; known ends with NULL. */
void reading_report_others(struct trigger_reading *r, const char *where,
                           struct slice object, const char *const *known);

/* Returns ERR_INVALID with this message about the option r->name. */
enum err reading_mistake(struct trigger_reading *r, const char *text);

/* Decodes a string of at most max characters. The result is valid until the next call. */
enum err reading_text(struct trigger_reading *r, struct slice value, size_t max,
                      struct slice *text);

/* Reads a finite number. reading_integer also requires an integer. */
enum err reading_number(struct trigger_reading *r, struct slice value, double *number);
enum err reading_integer(struct trigger_reading *r, struct slice value, double *number);
enum err reading_flag(struct trigger_reading *r, struct slice value, bool *flag);

/* Read the names of limits, which replace those that the task names, and the gates, which
 * replace the task's. */
enum err reading_concurrency(struct trigger_reading *r, struct slice value);
enum err reading_gates(struct trigger_reading *r, struct slice value);

/* Stores limits and gates. Call it when all options are known. */
void reading_take_needs(struct trigger_reading *r);

/* Stores the debounce option. Call it when all options are known: an explicit delay applies
 * to a newly created run. */
enum err reading_take_debounce(struct trigger_reading *r);

/* Stores the idempotency key, its lifetime and its shown form. Call it when all options
 * are known. */
enum err reading_take_key(struct trigger_reading *r);
