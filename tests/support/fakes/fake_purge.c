/* fake_purge.c - removes old runs and documents from the store in memory, for retention. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/fakes/fake_tables.h"

static bool is_value(const struct bytes *text, struct slice value)
{
    return !value.ptr || (text && slice_equal(bytes_slice(text), value));
}

static bool is_needed(struct env *env, struct slice name)
{
    list_each (link, &env->runs) {
        const struct run *run = &container_of(link, struct stored_run, link)->run;
        if (is_value(run->batch, name) || is_value(run->payload, name) ||
            is_value(run->output, name))
            return true;
    }
    return false;
}

static bool is_waited_for(struct env *env, struct slice name)
{
    char quoted[ID_MAX + 8];
    snprintf(quoted, sizeof(quoted), "\"%.*s\"", SLICE_ARG(name));
    list_each (link, &env->runs) {
        const struct run *run = &container_of(link, struct stored_run, link)->run;
        const struct bytes *waits = run_rare(run)->waits;
        if (!run_is_final(run) && waits && strstr(waits->data, quoted))
            return true;
    }
    return false;
}

typedef bool purge_rule_fn(struct env *env, const struct store_purge *req,
                           const struct stored_document *stored);

static bool is_unused_batch(struct env *env, const struct store_purge *req,
                            const struct stored_document *stored)
{
    (void)req;
    return stored->document.kind == DOC_BATCH &&
           !is_needed(env, bytes_slice(stored->document.name));
}

static bool is_unused_packet(struct env *env, const struct store_purge *req,
                             const struct stored_document *stored)
{
    (void)req;
    return stored->document.kind == DOC_PACKET &&
           !is_needed(env, bytes_slice(stored->document.name));
}

static bool is_stale(struct env *env, const struct store_purge *req,
                     const struct stored_document *stored)
{
    return stored->document.kind == DOC_WAITPOINT && stored->stale_at &&
           stored->stale_at < req->documents_before &&
           !is_waited_for(env, bytes_slice(stored->document.name));
}

static bool purge_documents(struct fake_data *data, struct env *env,
                            struct store_purge *req, purge_rule_fn *goes)
{
    size_t at = 0, count = 0;
    for (struct stored_document *stored; (stored = table_next(&data->documents, &at));) {
        if (stored->document.env != req->env ||
            stored->written_at >= req->documents_before || !goes(env, req, stored))
            continue;
        if (count++ == req->limit)
            return true;
        env->position.stored -= fake_data_document_size(&stored->document);
        fake_data_drop_document(data, (struct slice){ stored->key.ptr, stored->key.len });
        at = 0;
    }
    return false;
}

/* Returns true if the key is the run's trace, or a piece of it. */
static bool is_trace_of(const struct document *document, struct slice run_id)
{
    struct slice name = bytes_slice(document->name);
    if (document->kind == DOC_TRACE)
        return slice_equal(name, run_id);
    return document->kind == DOC_TRACE_PIECE && name.len > run_id.len + 1 &&
           !memcmp(name.ptr, run_id.ptr, run_id.len) && name.ptr[run_id.len] == '/';
}

static void drop_trace(struct fake_data *data, uint32_t env, struct slice run_id)
{
    size_t at = 0;
    for (struct stored_document *stored; (stored = table_next(&data->documents, &at));) {
        const struct document *document = &stored->document;
        if (document->env != env || !is_trace_of(document, run_id))
            continue;
        fake_data_env(data, env)->position.stored -= fake_data_document_size(document);
        fake_data_drop_document(data, (struct slice){ stored->key.ptr, stored->key.len });
        at = 0;
    }
}

/* Drops the entries of env, whose keys are "<number> <kind> <name>". Each name counts
 * `times` times as stored. */
static void drop_entries(struct table *table, struct env *env, int64_t times)
{
    size_t at = 0;
    for (struct key *key; (key = table_next(table, &at));) {
        struct slice name = { key->ptr, key->len }, number;
        uint64_t of = 0;
        slice_split(&name, ' ', &number);
        if (text_to_u64(number, &of) || of != env->position.env)
            continue;
        slice_split(&name, ' ', &number); /* the kind */
        env->position.stored -= STORED_ROW + times * (int64_t)name.len;
        table_remove(table, (struct slice){ key->ptr, key->len });
        free(key->ptr);
        free(key);
        at = 0;
    }
}

void fake_data_purge(struct fake_data *data, struct store_purge *req)
{
    struct env *env = fake_data_env(data, req->env);
    int64_t floor = req->before;
    req->count = 0;
    list_each (link, &env->runs) {
        struct stored_run *stored = container_of(link, struct stored_run, link);
        if (!run_is_final(&stored->run) || stored->run.updated_at >= req->before)
            continue;
        if (req->count == req->limit) {
            floor = stored->run.updated_at < floor ? stored->run.updated_at : floor;
            continue;
        }
        if (stored->run.rev > env->position.purged)
            env->position.purged = stored->run.rev;
        drop_trace(data, req->env, slice_of(stored->run.id));
        env->position.stored -= stored_run_bytes(&stored->run);
        fake_data_remove_run(data, env, stored);
        req->count++;
    }
    if (floor > env->position.floor)
        env->position.floor = floor;
    req->more_documents = purge_documents(data, env, req, is_unused_batch);
    req->more_documents |= purge_documents(data, env, req, is_unused_packet);
    req->more_documents |= purge_documents(data, env, req, is_stale);
    if (req->whole) {
        drop_entries(&data->claims, env, 2);
        drop_entries(&data->numbers, env, 1);
    }
    req->position = env->position;
    req->status = STORE_OK;
}
