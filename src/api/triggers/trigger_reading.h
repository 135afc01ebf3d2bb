/* trigger_reading.h - one read of options in progress; private to trigger_*.c. */
#pragma once

#include "api/triggers/trigger_options.h"

struct trigger_reading {
    const struct trigger_source *source;
    const struct trigger_place *place;
    struct trigger *item;
    struct trigger_parent *parent;
    struct failure *why;
    struct buf text; /* of the string read last */
    const char *name;
    struct slice type, key, key_ttl, key_options, deployment; /* raw, read at the end */
    bool has_machine, has_queue;                              /* the trigger names one */
};

typedef enum err read_option_fn(struct trigger_reading *r, struct slice value);

struct option {
    const char *name;
    read_option_fn *read;
    bool is_alone; /* a batch has it for all items: an item's is not read */
};

/* The options that runcast does not do; name NULL ends them. */
extern const struct option trigger_undone[];

/* An option that nobody reads is told to the caller. */
void reading_tell(struct trigger_reading *r, struct slice key);

/* The members of an object inside of the options, but for the known ones, are told to the
 * caller. where: "queue."; known: NULL ends it. */
void reading_tell_others(struct trigger_reading *r, const char *where, struct slice object,
                         const char *const *known);

/* Says what is wrong with the option that is being read. */
enum err reading_mistake(struct trigger_reading *r, const char *text);

/* The decoded string, of at most max characters; valid until the next one is read. */
enum err reading_text(struct trigger_reading *r, struct slice value, size_t max,
                      struct slice *text);

/* The number, which is finite; every number of JSON is spelled like one of C. */
enum err reading_number(struct trigger_reading *r, struct slice value, double *number);
enum err reading_integer(struct trigger_reading *r, struct slice value, double *number);
enum err reading_flag(struct trigger_reading *r, struct slice value, bool *flag);

/* The idempotency key, when all options are known. */
enum err reading_take_key(struct trigger_reading *r);
