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
    list_init(&left_out->lines);
}

void left_out_init_line(struct left_out *left_out, struct left_out_line *line)
{
    *line = (struct left_out_line){ .left_out = left_out, .may_read = true };
    list_init(&line->wanted);
    list_init(&line->link);
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
    if (wanted && !status) {
        repl_run_fill(wanted->change, &read->load.run);
        options->filled(options->owner, wanted->change);
    } else if (wanted && status == STORE_MISSING) {
        options->removed(options->owner, wanted->change);
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

static void count(struct left_out_line *line, int more)
{
    line->ahead += (unsigned)more;
    line->left_out->ahead += (unsigned)more;
}

static void begin_first(struct left_out_line *line)
{
    const struct left_out_options *options = &line->left_out->options;
    struct left_out_change *first =
        container_of(list_take(&line->wanted), struct left_out_change, link);
    first->is_begun = true;
    count(line, 1);
    if (is_needed(line->left_out, first)) {
        begin_read(line->left_out, first);
        return;
    }
    repl_run_fill(first->change, NULL);
    options->filled(options->owner, first->change);
}

/* Another environment comes first if it waits already. */
static void line_up(struct left_out_line *line)
{
    bool may =
        line->may_read && line->ahead < LEFT_OUT_OF_ONE && !list_empty(&line->wanted);
    if (!may)
        list_remove(&line->link);
    else if (list_empty(&line->link))
        list_append(&line->left_out->lines, &line->link);
}

static void begin_some(struct left_out *left_out)
{
    while (left_out->ahead < LEFT_OUT_AHEAD && !list_empty(&left_out->lines)) {
        struct left_out_line *line =
            container_of(list_take(&left_out->lines), struct left_out_line, link);
        begin_first(line);
        line_up(line);
    }
}

void left_out_read_on(struct left_out_line *line, bool may_read)
{
    line->may_read = may_read;
    line_up(line);
    begin_some(line->left_out);
}

void left_out_add(struct left_out_line *line, struct left_out_change *wanted)
{
    wanted->line = line;
    list_append(&line->wanted, &wanted->link);
    line_up(line);
    begin_some(line->left_out);
}

void left_out_forget(struct left_out_change *wanted)
{
    struct left_out_line *line = wanted->line;
    if (!wanted->change)
        return;
    list_remove(&wanted->link);
    if (wanted->read)
        wanted->read->wanted = NULL;
    if (wanted->is_begun)
        count(line, -1);
    *wanted = (struct left_out_change){ 0 };
    line_up(line);
    begin_some(line->left_out);
}
