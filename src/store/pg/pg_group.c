/* pg_group.c - encodes each claim and change of the commits, and decodes the result. */
#include "store/pg/pg_group.h"

#include <stdio.h>

#include "base/mem.h"
#include "store/run_sql.h"

enum {
    PUTS_PAYLOAD = 1, /* bits of commit_run_v101 */
    PUTS_METADATA = 2,
    PUTS_OUTPUT = 4,
    IMPOSSIBLE = -1, /* a version that no row has */
};

/* A task of an environment, for numbering its new runs. */
struct task {
    uint32_t index;  /* in task_envs and task_names, from 1 */
    uint64_t number; /* its counter, from the result */
    size_t key_len;
    char key[]; /* env and name */
};

/* A run, document or claim that the commit has already written. */
struct seen {
    uint32_t version; /* after that; 0: it was removed */
    int32_t claim;    /* number of the last claim on this key in the group, from 1 */
    size_t key_len;
    char key[];
};

static struct slice task_key(const void *value)
{
    const struct task *task = value;
    return (struct slice){ task->key, task->key_len };
}

static struct slice seen_key(const void *value)
{
    const struct seen *seen = value;
    return (struct slice){ seen->key, seen->key_len };
}

void pg_group_init(struct pg_group *group)
{
    *group = (struct pg_group){ 0 };
    table_init(&group->tasks, task_key);
    table_init(&group->seen, seen_key);
}

static void empty(struct table *table, table_key_fn *key)
{
    size_t at = 0;
    if (!table->count)
        return;
    for (void *value; (value = table_next(table, &at));)
        free(value);
    table_finish(table);
    table_init(table, key);
}

void pg_group_finish(struct pg_group *group)
{
    struct pg_array *arrays[] = { &group->envs,       &group->terms,    &group->task_envs,
                                  &group->task_names, &group->requests, &group->claims,
                                  &group->runs,       &group->documents };
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        pg_array_finish(arrays[i]);
    empty(&group->tasks, task_key);
    empty(&group->seen, seen_key);
    table_finish(&group->tasks);
    table_finish(&group->seen);
    buf_finish(&group->text);
    free(group->heads);
    *group = (struct pg_group){ 0 };
}

/* ---- environments ---- */

static void add_head(struct pg_group *group, uint32_t env)
{
    if (group->head_count && group->heads[group->head_count - 1].env == env)
        return;
    if (group->head_count == group->head_capacity) {
        group->head_capacity = group->head_capacity ? 2 * group->head_capacity : 16;
        group->heads =
            mem_resize(group->heads, group->head_capacity * sizeof(group->heads[0]));
    }
    group->heads[group->head_count++] = (struct pg_head){ .env = env };
}

static int by_env(const void *a, const void *b)
{
    uint32_t left = ((const struct pg_head *)a)->env;
    uint32_t right = ((const struct pg_head *)b)->env;
    return (left > right) - (left < right);
}

static void collect_heads(struct pg_group *group, const struct list *commits)
{
    size_t kept = 0;
    group->head_count = 0;
    list_each (link, commits) {
        const struct store_commit *req = container_of(link, struct store_commit, link);
        for (size_t i = 0; i < req->claim_count; i++)
            add_head(group, req->claims[i].env);
        for (size_t i = 0; i < req->change_count; i++)
            add_head(group, req->changes[i].env);
    }
    if (group->head_count)
        qsort(group->heads, group->head_count, sizeof(group->heads[0]), by_env);
    for (size_t i = 0; i < group->head_count; i++)
        if (!kept || group->heads[kept - 1].env != group->heads[i].env)
            group->heads[kept++] = group->heads[i];
    group->head_count = kept;
}

static struct pg_head *head_of(const struct pg_group *group, uint32_t env)
{
    struct pg_head wanted = { .env = env };
    return bsearch(&wanted, group->heads, group->head_count, sizeof(wanted), by_env);
}

/* From 1. */
static int32_t head_index(const struct pg_group *group, uint32_t env)
{
    return (int32_t)(head_of(group, env) - group->heads) + 1;
}

static void encode_heads(struct pg_group *group, pg_term_fn *term_of, const void *owner)
{
    pg_array_begin(&group->envs, PG_INT4);
    pg_array_begin(&group->terms, PG_INT8);
    for (size_t i = 0; i < group->head_count; i++) {
        pg_put_int4(&group->envs, (int32_t)group->heads[i].env);
        pg_put_int8(&group->terms, (int64_t)term_of(owner, group->heads[i].env));
    }
}

/* ---- keys ---- */

/* Makes a key: kind, number, env and text. */
static struct slice key_of(struct pg_group *group, char kind, uint32_t number, uint32_t env,
                           struct slice text)
{
    buf_clear(&group->text);
    buf_add_char(&group->text, kind);
    pg_add_int4(&group->text, (int32_t)number);
    pg_add_int4(&group->text, (int32_t)env);
    buf_add(&group->text, text);
    return buf_slice(&group->text);
}

static struct task *task_of(struct pg_group *group, const struct change *change)
{
    struct slice name = bytes_slice(change->run.task);
    struct slice key = key_of(group, 't', 0, change->env, name);
    struct task *task = table_find(&group->tasks, key);
    if (task)
        return task;
    task = mem_new_flex(struct task, key.len);
    task->index = ++group->task_count;
    task->key_len = key.len;
    memcpy(task->key, key.ptr, key.len);
    table_insert(&group->tasks, task);
    pg_put_int4(&group->task_envs, (int32_t)change->env);
    pg_put_bytes(&group->task_names, name);
    return task;
}

static bool is_numbered(const struct change *change)
{
    return change->kind == CHANGE_RUN && change->expected == 0 && change->run.task;
}

/* Finds or adds the key. Sets *before if it was there already. */
static struct seen *note_seen(struct pg_group *group, struct slice key, bool *before)
{
    struct seen *seen = table_find(&group->seen, key);
    *before = seen;
    if (seen)
        return seen;
    seen = mem_new_flex(struct seen, key.len);
    seen->key_len = key.len;
    memcpy(seen->key, key.ptr, key.len);
    table_insert(&group->seen, seen);
    return seen;
}

/* ---- claims ---- */

static int32_t note_claim(struct pg_group *group, const struct claim *claim)
{
    bool before;
    struct slice key = key_of(group, 'c', claim->kind, claim->env, bytes_slice(claim->key));
    struct seen *seen = note_seen(group, key, &before);
    int32_t earlier = seen->claim;
    seen->claim = (int32_t)group->claims.count + 1;
    return earlier;
}

static void encode_claim(struct pg_group *group, const struct claim *claim, bool alone)
{
    int32_t earlier = alone ? 0 : note_claim(group, claim);
    struct slice instead_of = slice_of(claim->instead_of);
    pg_row_begin(&group->claims);
    pg_put_int4(&group->claims, head_index(group, claim->env));
    pg_put_int2(&group->claims, (int16_t)claim->kind);
    pg_put_int8(&group->claims, claim->expires_at);
    pg_put_bool(&group->claims, claim->release);
    pg_put_int4(&group->claims, earlier);
    pg_put_bytes(&group->claims, slice_of(claim->owner));
    pg_put_bytes(&group->claims, instead_of.len ? instead_of : (struct slice){ 0 });
    pg_put_bytes(&group->claims, bytes_slice(claim->key));
    pg_row_end(&group->claims);
}

/* ---- changes ---- */

/* The version that must be in the database.
 *
 * again: this commit has already written it itself. */
struct basis {
    int64_t expected;
    bool again;
};

static struct basis basis_of(struct pg_group *group, const struct change *change,
                             bool alone)
{
    struct basis basis = { .expected = change->expected };
    bool is_run = change->kind == CHANGE_RUN, removed = !is_run && !change->document.body;
    if (removed && !change->expected)
        basis.expected = IMPOSSIBLE; /* a missing document cannot be removed */
    if (alone)
        return basis;
    struct slice name =
        is_run ? slice_of(change->run.id) : bytes_slice(change->document.name);
    unsigned kind = is_run ? 0 : change->document.kind;
    struct seen *seen = note_seen(
        group, key_of(group, is_run ? 'r' : 'd', kind, change->env, name), &basis.again);
    if (basis.again && basis.expected != seen->version)
        basis = (struct basis){ .expected = IMPOSSIBLE };
    seen->version = removed ? 0 : change->expected + 1;
    return basis;
}

static void encode_document(struct pg_group *group, const struct change *change, bool alone)
{
    const struct document *document = &change->document;
    struct pg_array *to = &group->documents;
    struct slice name = bytes_slice(document->name), body = bytes_slice(document->body);
    struct basis basis = basis_of(group, change, alone);
    pg_row_begin(to);
    pg_put_int4(to, head_index(group, change->env));
    pg_put_int2(to, (int16_t)document->kind);
    pg_put_int8(to, basis.expected);
    pg_put_bool(to, basis.again);
    pg_put_int8(to, body.ptr ? stored_document_bytes(name.len, body.len) : 0);
    pg_put_int8(to, document->stale_at);
    pg_put_bytes(to, name);
    pg_put_bytes(to, body);
    pg_row_end(to);
}

/* Returns bits of the packets to write. A new run needs no rows for absent packets. */
static int32_t packets_put(const struct change *change)
{
    const struct run *run = &change->run;
    const struct run_rare *rare = run_rare(run);
    bool is_old = change->expected > 0;
    int32_t puts = 0;
    if (change->marks & MARK_PAYLOAD && (is_old || run->payload || rare->payload_type))
        puts |= PUTS_PAYLOAD;
    if (change->marks & MARK_METADATA && (is_old || run->metadata || run->metadata_seed))
        puts |= PUTS_METADATA;
    if (change->marks & MARK_OUTPUT &&
        (is_old || run->output || run->error || rare->output_type))
        puts |= PUTS_OUTPUT;
    return puts;
}

/* The columns of the packets, and the bit that writes each. */
static const struct pg_packet {
    int32_t put;
    size_t offset; /* for run_field */
} packets[] = {
    { PUTS_PAYLOAD, offsetof(struct run, payload) },
    { PUTS_PAYLOAD, rare_offset(payload_type) },
    { PUTS_METADATA, offsetof(struct run, metadata) },
    { PUTS_METADATA, offsetof(struct run, metadata_seed) },
    { PUTS_OUTPUT, offsetof(struct run, output) },
    { PUTS_OUTPUT, rare_offset(output_type) },
    { PUTS_OUTPUT, offsetof(struct run, error) },
};

enum { PACKET_COUNT = sizeof(packets) / sizeof(packets[0]) };

static struct slice packet_of(const struct run *run, const struct pg_packet *packet)
{
    return bytes_slice(*(struct bytes *const *)run_field(run, packet->offset));
}

/* Returns the stored bytes of the row and the packets written, for commit_run_v101. */
static int64_t counted_bytes(const struct change *change, int32_t puts)
{
    const struct run *run = &change->run;
    int64_t sum = change->expected ? run_columns_size(run, COLUMN_TEXTS_CHANGING)
                                   : STORED_RUN + run_columns_size(run, COLUMN_TEXTS_ALL) +
                                         2 * (int64_t)run_tag_bytes(run);
    for (int i = 0; i < PACKET_COUNT; i++)
        if (puts & packets[i].put)
            sum += (int64_t)packet_of(run, &packets[i]).len;
    return sum;
}

/* Returns true for columns that the database function sets. */
static bool is_counted(const struct run_column *column)
{
    return column->offset == offsetof(struct run, number) ||
           column->offset == offsetof(struct run, version) ||
           column->offset == offsetof(struct run, rev);
}

static void encode_column(struct pg_array *to, const struct run_column *column,
                          const struct run *run)
{
    const void *field = run_field(run, column->offset);
    switch (column->type) {
    case COLUMN_U8: pg_put_int2(to, *(const uint8_t *)field); break;
    case COLUMN_U16: pg_put_int4(to, *(const uint16_t *)field); break;
    case COLUMN_U32: pg_put_int8(to, *(const uint32_t *)field); break;
    case COLUMN_I32: pg_put_int4(to, *(const int32_t *)field); break;
    case COLUMN_I64: pg_put_int8(to, *(const int64_t *)field); break;
    case COLUMN_U64: pg_put_int8(to, (int64_t) * (const uint64_t *)field); break;
    case COLUMN_REAL: pg_put_real(to, *(const double *)field); break;
    case COLUMN_TEXT: pg_put_bytes(to, run_column_text(column, run)); break;
    case COLUMN_FLAGS: pg_put_int4(to, run_flags(run)); break;
    }
}

static void encode_tags(struct pg_group *group, const struct tag_list *tags)
{
    buf_clear(&group->text);
    run_tags_add(&group->text, tags);
    pg_put_bytes(&group->runs, tags ? buf_slice(&group->text) : (struct slice){ 0 });
    pg_put_byteas(&group->runs, tags ? tags->names : NULL, tags ? tags->count : 0);
}

static void encode_columns(struct pg_array *to, const struct change *change, int32_t puts)
{
    const struct run *run = &change->run;
    for (int i = 0; i < RUN_COLUMN_COUNT; i++)
        if (!is_counted(&run_columns[i]))
            encode_column(to, &run_columns[i], run);
    for (int i = 0; i < PACKET_COUNT; i++)
        pg_put_bytes(to, puts & packets[i].put ? packet_of(run, &packets[i])
                                               : (struct slice){ 0 });
}

/* Returns the packet document that must exist already.
 *
 * Absent if none must, or the commit writes it. */
static struct slice packet_needed(struct pg_group *group, const struct change *change)
{
    struct slice name = bytes_slice(change->run.payload);
    if (!(change->marks & MARK_PACKET))
        return (struct slice){ 0 };
    const struct seen *seen =
        table_find(&group->seen, key_of(group, 'd', DOC_PACKET, change->env, name));
    return seen && seen->version ? (struct slice){ 0 } : name;
}

static void encode_run(struct pg_group *group, const struct change *change, bool alone)
{
    const struct run *run = &change->run;
    struct pg_array *to = &group->runs;
    struct basis basis = basis_of(group, change, alone);
    int32_t puts = packets_put(change);
    pg_row_begin(to);
    pg_put_int4(to, head_index(group, change->env));
    pg_put_bytes(to, slice_of(run->id));
    pg_put_int8(to, basis.expected);
    pg_put_bool(to, basis.again);
    pg_put_int4(to, (int32_t)change->marks);
    pg_put_int4(to, puts);
    pg_put_int8(to, counted_bytes(change, puts));
    pg_put_int4(to, is_numbered(change) ? (int32_t)task_of(group, change)->index : 0);
    pg_put_bytes(to, packet_needed(group, change));
    encode_tags(group, run->tags);
    encode_columns(to, change, puts);
    pg_row_end(to);
}

/* ---- the group ---- */

static void encode_commit(struct pg_group *group, const struct store_commit *req)
{
    struct buf kinds = { 0 };
    bool one_claim = req->claim_count < 2, one_change = req->change_count < 2;
    empty(&group->seen, seen_key);
    for (size_t i = 0; i < req->claim_count; i++)
        encode_claim(group, &req->claims[i], one_claim);
    for (size_t i = 0; i < req->change_count; i++) {
        const struct change *change = &req->changes[i];
        buf_add_char(&kinds, change->kind == CHANGE_RUN ? 0 : 1);
        if (change->kind == CHANGE_RUN)
            encode_run(group, change, one_change);
        else
            encode_document(group, change, one_change);
    }
    pg_row_begin(&group->requests);
    pg_put_int8(&group->requests, req->now_ms);
    pg_put_int4(&group->requests, (int32_t)req->claim_count);
    pg_put_bytes(&group->requests, buf_slice(&kinds));
    pg_row_end(&group->requests);
    group->request_count++;
    buf_finish(&kinds);
}

void pg_group_encode(struct pg_group *group, const struct list *commits,
                     const struct pg_types *types, pg_term_fn *term_of, const void *owner)
{
    empty(&group->tasks, task_key);
    group->task_count = group->request_count = 0;
    pg_array_begin(&group->task_envs, PG_INT4);
    pg_array_begin(&group->task_names, PG_BYTEA);
    pg_array_begin(&group->requests, types->request);
    pg_array_begin(&group->claims, types->claim);
    pg_array_begin(&group->runs, types->run);
    pg_array_begin(&group->documents, types->document);
    collect_heads(group, commits);
    encode_heads(group, term_of, owner);
    list_each (link, commits)
        encode_commit(group, container_of(link, struct store_commit, link));
}

void pg_group_bind(struct pg_group *group, struct pg_params *params,
                   const struct pg_types *types)
{
    pg_param_array(params, PG_INT4_ARRAY, pg_array_end(&group->envs));
    pg_param_array(params, PG_INT8_ARRAY, pg_array_end(&group->terms));
    pg_param_array(params, PG_INT4_ARRAY, pg_array_end(&group->task_envs));
    pg_param_array(params, PG_BYTEA_ARRAY, pg_array_end(&group->task_names));
    pg_param_array(params, types->requests, pg_array_end(&group->requests));
    pg_param_array(params, types->claims, pg_array_end(&group->claims));
    pg_param_array(params, types->runs, pg_array_end(&group->runs));
    pg_param_array(params, types->documents, pg_array_end(&group->documents));
}

/* ---- the answer ---- */

static bool read_heads(struct pg_group *group, struct slice *answer)
{
    int64_t seq;
    for (size_t i = 0; i < group->head_count; i++) {
        struct pg_head *head = &group->heads[i];
        if (!pg_take_int8(answer, &seq) || !pg_take_int8(answer, &head->grown))
            return false;
        head->seq = (uint64_t)seq;
    }
    return true;
}

static bool read_tasks(struct pg_group *group, struct slice *answer)
{
    uint64_t *numbers = mem_new_array(uint64_t, group->task_count);
    bool whole = true;
    for (uint32_t i = 0; i < group->task_count && whole; i++)
        whole = pg_take_int8(answer, (int64_t *)&numbers[i]);
    size_t at = 0;
    for (struct task *task; whole && (task = table_next(&group->tasks, &at));)
        task->number = numbers[task->index - 1];
    free(numbers);
    return whole;
}

static bool read_owners(struct slice *answer, struct store_commit *req)
{
    for (size_t i = 0; i < req->claim_count; i++) {
        struct claim *claim = &req->claims[i];
        int32_t len;
        if (!pg_take_int4(answer, &len) || len >= ID_MAX || (int64_t)answer->len < len)
            return false;
        claim->taken = len >= 0;
        if (!claim->taken)
            continue;
        snprintf(claim->owner, sizeof(claim->owner), "%.*s", (int)len, answer->ptr);
        *answer = slice_from(*answer, (size_t)len);
    }
    return true;
}

static void number_changes(struct pg_group *group, struct store_commit *req)
{
    for (size_t i = 0; i < req->change_count; i++) {
        struct change *change = &req->changes[i];
        change_number(change, ++head_of(group, change->env)->seq);
        if (is_numbered(change))
            change->run.number = (uint32_t)++task_of(group, change)->number;
    }
}

static bool read_commit(struct pg_group *group, struct slice *answer,
                        struct store_commit *req)
{
    if (!answer->len)
        return false;
    char said = *answer->ptr;
    *answer = slice_from(*answer, 1);
    for (size_t i = 0; i < req->claim_count; i++)
        req->claims[i].taken = false;
    switch (said) {
    case 'o':
        req->status = STORE_OK;
        number_changes(group, req);
        return true;
    case 'm': req->status = STORE_MOVED; return true;
    case 'l': req->status = STORE_LOST; return true;
    case 'p': req->status = STORE_MISSING; return true;
    case 't': req->status = STORE_TAKEN; return read_owners(answer, req);
    default: return false;
    }
}

static bool counts_are(const struct pg_group *group, const int32_t counts[3])
{
    return counts[0] == (int32_t)group->request_count &&
           counts[1] == (int32_t)group->head_count &&
           counts[2] == (int32_t)group->task_count;
}

enum pg_outcome pg_group_decode(struct pg_group *group, struct slice answer,
                                const struct list *commits)
{
    int32_t counts[3];
    if (slice_is(answer, "g"))
        return PG_GONE;
    if (slice_is(answer, "o"))
        return PG_STRAY;
    if (!answer.len || *answer.ptr != 'a')
        return PG_GARBLED;
    answer = slice_from(answer, 1);
    for (int i = 0; i < 3; i++)
        if (!pg_take_int4(&answer, &counts[i]))
            return PG_GARBLED;
    if (!counts[0] && group->request_count)
        return PG_VOIDED;
    if (!counts_are(group, counts) || !read_heads(group, &answer) ||
        !read_tasks(group, &answer))
        return PG_GARBLED;
    list_each (link, commits)
        if (!read_commit(group, &answer, container_of(link, struct store_commit, link)))
            return PG_GARBLED;
    return answer.len ? PG_GARBLED : PG_ANSWERED;
}
