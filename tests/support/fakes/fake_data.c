/* fake_data.c - the content of a store, in memory.
 *
 *   tables   env               ─► struct env: its position, its runs by their last change
 *            env + id          ─► struct stored_run
 *            env + kind + name ─► struct stored_document
 *            env + kind + key  ─► struct stored_claim; env + task ─► struct stored_number
 *
 * A commit is checked first, each item against what the items before it will have made of
 * the stored state; only then it is written, so nothing has to be undone. */
#include "tests/support/fakes/fake_tables.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/model/filter.h"
#include "tests/support/fakes/fake_page.h"

static struct slice key_of(const void *value)
{
    const struct key *key = value;
    return (struct slice){ key->ptr, key->len };
}

struct fake_data *fake_data_create(void)
{
    struct fake_data *data = mem_new(struct fake_data);
    table_init(&data->envs, key_of);
    table_init(&data->runs, key_of);
    table_init(&data->documents, key_of);
    table_init(&data->claims, key_of);
    table_init(&data->numbers, key_of);
    return data;
}

void fake_data_remove_run(struct fake_data *data, struct env *env,
                          struct stored_run *stored)
{
    table_remove(&data->runs, key_of(stored));
    list_remove(&stored->link);
    env->count--;
    run_finish(&stored->run);
    free(stored->key.ptr);
    free(stored);
}

static void drop_table(struct table *table)
{
    size_t at = 0;
    for (struct key *key; (key = table_next(table, &at));) {
        free(key->ptr);
        free(key);
    }
    table_finish(table);
}

void fake_data_destroy(struct fake_data *data)
{
    if (!data)
        return;
    size_t at = 0;
    for (struct stored_run *stored; (stored = table_next(&data->runs, &at));)
        run_finish(&stored->run);
    at = 0;
    for (struct stored_document *stored; (stored = table_next(&data->documents, &at));)
        document_finish(&stored->document);
    drop_table(&data->runs);
    drop_table(&data->documents);
    drop_table(&data->claims);
    drop_table(&data->numbers);
    drop_table(&data->envs);
    buf_finish(&data->name);
    free(data);
}

/* ---- finding ---- */

static struct slice name_of(struct fake_data *data, uint32_t env, int kind,
                            struct slice name)
{
    buf_clear(&data->name);
    buf_print(&data->name, "%u %d ", env, kind);
    buf_add(&data->name, name);
    return buf_slice(&data->name);
}

/* Finds the entry or adds a zeroed one of that size. */
static struct key *find_or_add(struct table *table, struct slice name, size_t size)
{
    struct key *key = table_find(table, name);
    if (key)
        return key;
    key = mem_alloc(size);
    key->ptr = mem_text(name);
    key->len = name.len;
    table_insert(table, key);
    return key;
}

struct env *fake_data_env(struct fake_data *data, uint32_t number)
{
    struct slice name = name_of(data, number, 0, SLICE(""));
    struct env *env = (struct env *)find_or_add(&data->envs, name, sizeof(*env));
    if (!env->runs.next)
        list_init(&env->runs);
    env->position.env = number;
    return env;
}

static struct stored_run *find_run(struct fake_data *data, uint32_t env, struct slice id)
{
    return table_find(&data->runs, name_of(data, env, 0, id));
}

static struct stored_document *find_document(struct fake_data *data, uint32_t env,
                                             enum document_kind kind, struct slice name)
{
    return table_find(&data->documents, name_of(data, env, (int)kind, name));
}

static struct stored_claim *find_claim(struct fake_data *data, const struct claim *claim)
{
    return table_find(&data->claims,
                      name_of(data, claim->env, (int)claim->kind, bytes_slice(claim->key)));
}

/* ---- commit: check ---- */

static bool same_claim(const struct claim *a, const struct claim *b)
{
    return a->env == b->env && a->kind == b->kind &&
           slice_equal(bytes_slice(a->key), bytes_slice(b->key));
}

/* The owner after the earlier claims of the commit have been written; "": none. */
static const char *owner_before(struct fake_data *data, const struct store_commit *req,
                                const struct claim *claim)
{
    const struct stored_claim *stored = find_claim(data, claim);
    bool is_over = stored && stored->expires_at && stored->expires_at <= req->now_ms;
    const char *owner = stored && !is_over ? stored->owner : "";
    for (const struct claim *c = req->claims; c < claim; c++) {
        if (same_claim(c, claim) && !c->release)
            owner = c->owner;
        else if (same_claim(c, claim) && !strcmp(c->owner, owner))
            owner = "";
    }
    return owner;
}

static bool check_claims(struct fake_data *data, struct store_commit *req)
{
    bool all_free = true;
    for (size_t i = 0; i < req->claim_count; i++) {
        struct claim *c = &req->claims[i];
        const char *owner = owner_before(data, req, c);
        c->taken = !c->release && *owner && strcmp(owner, c->owner) &&
                   strcmp(owner, c->instead_of);
        if (c->taken)
            snprintf(c->owner, sizeof(c->owner), "%s", owner);
        all_free = all_free && !c->taken;
    }
    return all_free;
}

static struct slice change_name(const struct change *change)
{
    return change->kind == CHANGE_RUN ? slice_of(change->run.id)
                                      : bytes_slice(change->document.name);
}

static bool same_thing(const struct change *a, const struct change *b)
{
    return a->kind == b->kind && a->env == b->env &&
           (a->kind == CHANGE_RUN || a->document.kind == b->document.kind) &&
           slice_equal(change_name(a), change_name(b));
}

static uint32_t version_before(struct fake_data *data, const struct store_commit *req,
                               const struct change *change)
{
    for (const struct change *c = change; c-- > req->changes;) {
        if (same_thing(c, change))
            return c->kind == CHANGE_DOCUMENT && !c->document.body ? 0 : c->expected + 1;
    }
    if (change->kind == CHANGE_RUN) {
        struct stored_run *run = find_run(data, change->env, change_name(change));
        return run ? run->run.version : 0;
    }
    struct stored_document *document =
        find_document(data, change->env, change->document.kind, change_name(change));
    return document ? document->document.version : 0;
}

static bool check_versions(struct fake_data *data, const struct store_commit *req)
{
    for (size_t i = 0; i < req->change_count; i++) {
        if (version_before(data, req, &req->changes[i]) != req->changes[i].expected)
            return false;
    }
    return true;
}

/* Returns true if the packets exist that new runs name as their payloads. */
static bool check_packets(struct fake_data *data, const struct store_commit *req)
{
    for (size_t i = 0; i < req->change_count; i++) {
        const struct change *change = &req->changes[i];
        if (change->kind == CHANGE_RUN && change->marks & MARK_PACKET &&
            !find_document(data, change->env, DOC_PACKET, bytes_slice(change->run.payload)))
            return false;
    }
    return true;
}

/* ---- commit: write ---- */

enum { BRIEF_MAX_MS = 2 * 3600 * 1000 };

static void remove_claim(struct fake_data *data, struct stored_claim *stored)
{
    fake_data_env(data, stored->env)->position.stored -= stored->bytes;
    table_remove(&data->claims, key_of(stored));
    free(stored->key.ptr);
    free(stored);
}

/* Returns a claim that has expired, or a brief one that was taken before the clock was set
 * back. Returns NULL if every claim is kept. */
static struct stored_claim *find_expired(const struct fake_data *data, int64_t now_ms)
{
    size_t at = 0;
    for (struct stored_claim *stored; (stored = table_next(&data->claims, &at));)
        if (stored->expires_at &&
            (stored->expires_at <= now_ms ||
             (stored->brief && stored->expires_at > now_ms + BRIEF_MAX_MS)))
            return stored;
    return NULL;
}

static void write_claim(struct fake_data *data, const struct claim *claim)
{
    struct stored_claim *stored = find_claim(data, claim);
    int64_t bytes = stored_claim_bytes(bytes_slice(claim->key).len);
    struct store_position *position = &fake_data_env(data, claim->env)->position;
    if (claim->release && stored && !strcmp(stored->owner, claim->owner))
        remove_claim(data, stored);
    if (claim->release)
        return;
    position->stored += stored ? 0 : bytes;
    stored = (struct stored_claim *)find_or_add(
        &data->claims, name_of(data, claim->env, (int)claim->kind, bytes_slice(claim->key)),
        sizeof(*stored));
    stored->env = claim->env;
    stored->kind = claim->kind;
    memcpy(stored->owner, claim->owner, sizeof(stored->owner));
    stored->expires_at = claim->expires_at;
    stored->bytes = bytes;
    stored->brief = claim->brief;
}

/* Fields that are not marked are not written, whatever the change carries. */
static void keep_unmarked(struct run *run, const struct run *old, unsigned marks)
{
    if (!(marks & MARK_PAYLOAD)) {
        bytes_set(&run->payload, old->payload);
        if (run_rare(run)->payload_type != run_rare(old)->payload_type)
            bytes_set(&run_rare_edit(run)->payload_type, run_rare(old)->payload_type);
    }
    if (!(marks & MARK_METADATA)) {
        bytes_set(&run->metadata, old->metadata);
        bytes_set(&run->metadata_seed, old->metadata_seed);
    }
    if (!(marks & MARK_OUTPUT)) {
        bytes_set(&run->output, old->output);
        if (run_rare(run)->output_type != run_rare(old)->output_type)
            bytes_set(&run_rare_edit(run)->output_type, run_rare(old)->output_type);
        bytes_set(&run->error, old->error);
    }
    if (!(marks & MARK_WHOLE)) {
        struct tag_list *tags = tag_list_ref(old->tags);
        tag_list_unref(run->tags);
        run->tags = tags;
    }
}

static void write_run(struct fake_data *data, struct env *env, struct change *change)
{
    struct stored_run *stored = find_run(data, change->env, slice_of(change->run.id));
    if (!stored) {
        struct slice task = bytes_slice(change->run.task);
        struct stored_number *number = (struct stored_number *)find_or_add(
            &data->numbers, name_of(data, change->env, 0, task), sizeof(*number));
        change->run.number = ++number->last;
        if (number->last == 1)
            env->position.stored += stored_task_bytes(task.len);
        stored = (struct stored_run *)find_or_add(
            &data->runs, name_of(data, change->env, 0, slice_of(change->run.id)),
            sizeof(*stored));
        list_init(&stored->link);
        env->count++;
        run_copy(&stored->run, &change->run);
    } else {
        struct run run;
        run_copy(&run, &change->run);
        keep_unmarked(&run, &stored->run, change->marks);
        run_finish(&stored->run);
        stored->run = run;
    }
    list_remove(&stored->link);
    list_append(&env->runs, &stored->link);
}

void fake_data_drop_document(struct fake_data *data, struct slice name)
{
    struct stored_document *stored = table_remove(&data->documents, name);
    document_finish(&stored->document);
    free(stored->key.ptr);
    free(stored);
}

static void write_document(struct fake_data *data, const struct change *change,
                           int64_t now_ms)
{
    const struct document *document = &change->document;
    struct slice name =
        name_of(data, change->env, (int)document->kind, bytes_slice(document->name));
    if (!document->body) {
        fake_data_drop_document(data, name);
        return;
    }
    struct stored_document *stored =
        (struct stored_document *)find_or_add(&data->documents, name, sizeof(*stored));
    stored->document.kind = document->kind;
    stored->document.env = change->env;
    stored->document.version = document->version;
    bytes_set(&stored->document.name, document->name);
    bytes_set(&stored->document.body, document->body);
    stored->seq = change->seq;
    stored->written_at = now_ms;
    stored->stale_at = document->stale_at;
}

int64_t fake_data_document_size(const struct document *document)
{
    return stored_document_bytes(bytes_slice(document->name).len,
                                 bytes_slice(document->body).len);
}

/* The current size of the item that the change writes. */
static int64_t stored_size(struct fake_data *data, const struct change *change)
{
    if (change->kind == CHANGE_RUN) {
        struct stored_run *run = find_run(data, change->env, slice_of(change->run.id));
        return run ? stored_run_bytes(&run->run) : 0;
    }
    struct stored_document *document = find_document(
        data, change->env, change->document.kind, bytes_slice(change->document.name));
    return document ? fake_data_document_size(&document->document) : 0;
}

void fake_data_commit(struct fake_data *data, struct store_commit *req)
{
    req->status = !check_claims(data, req)     ? STORE_TAKEN
                  : !check_versions(data, req) ? STORE_LOST
                  : !check_packets(data, req)  ? STORE_MISSING
                                               : STORE_OK;
    if (req->status)
        return;
    for (struct stored_claim *old; (old = find_expired(data, req->now_ms));)
        remove_claim(data, old);
    for (size_t i = 0; i < req->claim_count; i++)
        write_claim(data, &req->claims[i]);
    for (size_t i = 0; i < req->change_count; i++) {
        struct change *change = &req->changes[i];
        struct env *env = fake_data_env(data, change->env);
        change_number(change, ++env->position.seq);
        env->position.stored -= stored_size(data, change);
        if (change->kind == CHANGE_RUN)
            write_run(data, env, change);
        else
            write_document(data, change, req->now_ms);
        env->position.stored += stored_size(data, change);
    }
}

void fake_data_tell_stored(struct fake_data *data, const struct store *store)
{
    size_t at = 0;
    for (struct env *env; (env = table_next(&data->envs, &at));) {
        int64_t more = env->position.stored - env->told;
        env->told += more;
        if (more && store->on_stored)
            store->on_stored(store->stored_owner, env->position.env, more);
    }
}

/* ---- reads ---- */

static enum store_status read_load(struct fake_data *data, struct store_read *read)
{
    struct store_load *req = container_of(read, struct store_load, read);
    struct slice name = bytes_slice(req->name);
    if (req->is_document) {
        struct stored_document *stored = find_document(data, read->env, req->kind, name);
        if (!stored)
            return STORE_MISSING;
        req->document = stored->document;
        bytes_ref(req->document.name);
        bytes_ref(req->document.body);
    } else {
        struct stored_run *stored = find_run(data, read->env, name);
        for (size_t i = 0; i < req->other_count && !stored; i++)
            stored = find_run(data, read->env = req->others[i], name);
        if (!stored)
            return STORE_MISSING;
        run_copy(&req->run, &stored->run);
    }
    return STORE_OK;
}

static enum store_status read_piece(struct fake_data *data, struct store_read *read)
{
    struct store_piece *req = container_of(read, struct store_piece, read);
    struct stored_document *stored =
        find_document(data, read->env, req->kind, bytes_slice(req->name));
    if (!stored)
        return STORE_MISSING;
    bool is_other = req->seq && req->seq != stored->seq;
    struct slice body = bytes_slice(stored->document.body);
    req->seq = stored->seq;
    req->total = body.len;
    if (is_other)
        return STORE_LOST;
    size_t start = req->last ? body.len - (req->limit < body.len ? req->limit : body.len)
                             : (req->offset < body.len ? req->offset : body.len);
    body = slice_from(body, start);
    if (body.len > req->limit)
        body.len = req->limit;
    req->piece = bytes_create(body);
    return STORE_OK;
}

static int newest_id_first(const void *a, const void *b)
{
    const struct run *const *left = a, *const *right = b;
    return strcmp((*right)->id, (*left)->id);
}

static bool inside_page(const struct run *run, const struct store_list *req)
{
    if (*req->before)
        return strcmp(run->id, req->before) > 0;
    return !*req->after || strcmp(run->id, req->after) < 0;
}

/* Leaves out fields that were not requested. */
static void drop_parts(struct run *run, enum store_parts parts)
{
    if (parts == STORE_PACKETS)
        return;
    if (parts == STORE_FACTS_ALONE) {
        bytes_clear(&run->metadata);
        bytes_clear(&run->metadata_seed);
    }
    bytes_clear(&run->payload);
    bytes_clear(&run->output);
    bytes_clear(&run->error);
    if (!run->rare)
        return;
    bytes_clear(&run_rare_edit(run)->payload_type);
    bytes_clear(&run_rare_edit(run)->output_type);
}

static enum store_status read_list(struct fake_data *data, struct store_read *read)
{
    struct store_list *req = container_of(read, struct store_list, read);
    struct env *env = fake_data_env(data, read->env);
    const struct run **found = mem_new_array(const struct run *, env->count);
    struct query *query = query_create(&req->filter, 0); /* sorted */
    size_t count = 0;
    list_each (link, &env->runs) {
        const struct run *run = &container_of(link, struct stored_run, link)->run;
        if (inside_page(run, req) && query_matches(query, run))
            found[count++] = run;
    }
    qsort(found, count, sizeof(*found), newest_id_first);
    req->seq = env->position.seq;
    req->count = count < req->limit ? count : req->limit;
    req->more = count > req->count;
    req->runs = mem_new_array(struct run, req->count);
    size_t first = *req->before ? count - req->count : 0;
    size_t bytes = 0;
    for (size_t i = 0; i < req->count; i++) {
        if (req->byte_limit && bytes > req->byte_limit) {
            req->count = i;
            req->more = true;
            break;
        }
        run_copy(&req->runs[i], found[first + i]);
        drop_parts(&req->runs[i], req->parts);
        bytes += run_packet_bytes(&req->runs[i]);
    }
    query_unref(query);
    free(found);
    return STORE_OK;
}

static enum store_status read_count(struct fake_data *data, struct store_read *read)
{
    struct store_count *req = container_of(read, struct store_count, read);
    struct env *env = fake_data_env(data, read->env);
    memset(req->counts, 0, sizeof(req->counts));
    req->seq = env->position.seq;
    struct query *query = query_create(&req->filter, 0); /* sorted */
    list_each (link, &env->runs) {
        const struct run *run = &container_of(link, struct stored_run, link)->run;
        req->counts[run->status] += query_matches(query, run);
    }
    query_unref(query);
    return STORE_OK;
}

static bool walks_past(const struct run *run, const struct store_walk *req)
{
    const struct filter filter = { .name = req->name,
                                   .created_from = req->created_from,
                                   .kind = req->kind == WALK_TAG     ? TOPIC_TAG
                                           : req->kind == WALK_BATCH ? TOPIC_BATCH
                                                                     : TOPIC_ALL };
    return filter_wants(&filter, run) && run->rev > req->after && run->rev <= req->up_to &&
           (req->kind != WALK_UNFINISHED || !run_is_settled(run)) &&
           (req->kind != WALK_SETTLED || run_is_settled(run));
}

static enum store_status read_walk(struct fake_data *data, struct store_read *read)
{
    struct store_walk *req = container_of(read, struct store_walk, read);
    struct env *env = fake_data_env(data, read->env);
    size_t bytes = 0;
    req->count = 0;
    req->seq = env->position.seq;
    req->runs =
        mem_new_array(struct run, req->limit < env->count ? req->limit : env->count);
    struct list *at = &env->runs;
    while ((at = req->newest_first ? at->prev : at->next) != &env->runs) {
        const struct run *run = &container_of(at, struct stored_run, link)->run;
        if (!walks_past(run, req))
            continue;
        req->more =
            req->count == req->limit || (req->byte_limit && bytes > req->byte_limit);
        if (req->more)
            break;
        run_copy(&req->runs[req->count++], run);
        bytes += run_packet_bytes(run);
    }
    return STORE_OK;
}

/* Returns the name that name_of made the key of. */
static struct slice name_in(const struct key *key)
{
    struct slice rest = { key->ptr, key->len }, part;
    slice_split(&rest, ' ', &part);
    slice_split(&rest, ' ', &part);
    return rest;
}

static enum store_status read_claims(struct fake_data *data, struct store_scan *req)
{
    size_t at = 0;
    req->documents = mem_new_array(struct document, data->claims.count);
    req->count = 0;
    for (struct stored_claim *stored; (stored = table_next(&data->claims, &at));)
        if (stored->kind == req->claim_kind &&
            (req->read.env == ENV_EVERY || stored->env == req->read.env))
            req->documents[req->count++] =
                (struct document){ .env = stored->env,
                                   .name = bytes_create(name_in(&stored->key)),
                                   .body = bytes_create(slice_of(stored->owner)),
                                   .stale_at = stored->expires_at };
    fake_page_cut(req);
    return STORE_OK;
}

static enum store_status read_scan(struct fake_data *data, struct store_read *read)
{
    struct store_scan *req = container_of(read, struct store_scan, read);
    size_t at = 0;
    if (req->of_claims)
        return read_claims(data, req);
    req->count = 0;
    req->documents = mem_new_array(struct document, data->documents.count);
    for (struct stored_document *stored; (stored = table_next(&data->documents, &at));) {
        if (stored->document.kind != req->kind ||
            (read->env != ENV_EVERY && stored->document.env != read->env))
            continue;
        bytes_ref(stored->document.name);
        bytes_ref(stored->document.body);
        req->documents[req->count++] = stored->document;
    }
    fake_page_cut(req);
    return STORE_OK;
}

enum store_status fake_data_read(struct fake_data *data, struct store_read *read)
{
    static enum store_status (*const reads[])(struct fake_data *, struct store_read *) = {
        [READ_LOAD] = read_load,   [READ_PIECE] = read_piece, [READ_LIST] = read_list,
        [READ_COUNT] = read_count, [READ_WALK] = read_walk,   [READ_SCAN] = read_scan,
    };
    return reads[read->kind](data, read);
}

struct store_position fake_data_position(struct fake_data *data, uint32_t env)
{
    return fake_data_env(data, env)->position;
}

const struct run *fake_data_run(struct fake_data *data, uint32_t env, struct slice id)
{
    struct stored_run *stored = find_run(data, env, id);
    return stored ? &stored->run : NULL;
}

size_t fake_data_count(struct fake_data *data, uint32_t env)
{
    return fake_data_env(data, env)->count;
}
