/* left_out.c - one read for each change, several at a time. */
#include "core/replication/left_out.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/metrics.h"

/* Outlives the change if that is given up. */
struct left_out_read {
    struct store_load load;
    struct left_out *left_out;
    struct left_out_change *wanted; /* NULL: given up */
};

void left_out_init(struct left_out *left_out, const struct left_out_options *options)
{
    *left_out = (struct left_out){ .options = *options };
    list_init(&left_out->wanted);
}

static void finish(struct left_out_read *read)
{
    read->left_out->reading--;
    bytes_unref(read->load.name);
    run_finish(&read->load.run);
    free(read);
}

static void on_loaded(struct store_read *head, enum store_status status)
{
    struct left_out_read *read = container_of(head, struct left_out_read, load.read);
    const struct left_out_options *options = &read->left_out->options;
    struct left_out_change *wanted = read->wanted;
    if (wanted)
        wanted->read = NULL;
    if (wanted && (!status || status == STORE_MISSING)) {
        repl_run_fill(wanted->change, status ? NULL : &read->load.run);
        options->filled(options->owner);
    } else if (wanted) {
        options->failed(options->owner);
    }
    finish(read);
}

static void begin_read(struct left_out *left_out, struct left_out_change *wanted)
{
    struct left_out_read *read = mem_new(struct left_out_read);
    struct store *store = left_out->options.store;
    *read = (struct left_out_read){
        .load = { .read = { READ_LOAD, wanted->change->env, on_loaded },
                  .name = bytes_create(slice_of(wanted->change->run.id)),
                  .is_for_memory = true },
        .left_out = left_out,
        .wanted = wanted,
    };
    wanted->read = read;
    left_out->reading++;
    metric_add(M_REPLICATION_READS, 1);
    store->ops->read(store, &read->load.read);
}

static bool is_needed(const struct left_out *left_out, const struct left_out_change *wanted)
{
    const struct left_out_options *options = &left_out->options;
    return wanted->is_before || options->needs(options->owner, wanted->change);
}

static void begin_some(struct left_out *left_out)
{
    while (left_out->may_read && left_out->ahead < LEFT_OUT_AHEAD &&
           !list_empty(&left_out->wanted)) {
        struct left_out_change *first =
            container_of(list_take(&left_out->wanted), struct left_out_change, link);
        first->is_begun = true;
        left_out->ahead++;
        if (is_needed(left_out, first))
            begin_read(left_out, first);
        else
            repl_run_fill(first->change, NULL);
    }
}

void left_out_read_on(struct left_out *left_out, bool may_read)
{
    left_out->may_read = may_read;
    begin_some(left_out);
}

void left_out_add(struct left_out *left_out, struct left_out_change *wanted)
{
    list_append(&left_out->wanted, &wanted->link);
    begin_some(left_out);
}

void left_out_forget(struct left_out *left_out, struct left_out_change *wanted)
{
    if (!wanted->change)
        return;
    list_remove(&wanted->link);
    if (wanted->read)
        wanted->read->wanted = NULL;
    if (wanted->is_begun)
        left_out->ahead--;
    *wanted = (struct left_out_change){ 0 };
    begin_some(left_out);
}
