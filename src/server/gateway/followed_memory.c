/* followed_memory.c - keeps documents by name, and creates environments from theirs. */
#include "server/gateway/followed_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json_tree.h"
#include "base/mem.h"
#include "base/slots.h"
#include "base/table.h"
#include "core/live/environment.h"
#include "server/gateway/load.h"

enum { NUMBER_MAX = 1000000 }; /* of environments */

/* A document of the accounts. */
struct followed_document {
    struct document document;
    struct buf key;  /* kind and name */
    unsigned round;  /* of followed_memory::round, when it was read last */
    uint32_t number; /* of an environment, from 1; otherwise 0 */
};

struct followed_memory {
    struct loop *loop;
    struct followed_memory_options options;
    struct table documents;    // of struct followed_document, by key
    struct slots of_number;    // of struct followed_document, by number of the environment
    struct slots environments; // of struct environment, by number
    struct load_documents load;
    unsigned round;           /* counts the reads of all documents */
    struct deferred trimming; /* of all environments */
    uint32_t trim_at;         /* where it continues */
    struct deferred dropping;
    void (*dropped)(void *owner);
};

/* ---- documents ---- */

static struct slice key_of(const void *value)
{
    return buf_slice(&((const struct followed_document *)value)->key);
}

static struct followed_document *document_find(const struct followed_memory *memory,
                                               const struct document *document,
                                               struct buf *key)
{
    buf_print(key, "%d:", document->kind);
    buf_add(key, bytes_slice(document->name));
    return table_find(&memory->documents, buf_slice(key));
}

static void forget(struct followed_memory *memory, struct followed_document *known)
{
    table_remove(&memory->documents, buf_slice(&known->key));
    if (known->number)
        *slots_at(&memory->of_number, known->number) = NULL;
    document_finish(&known->document);
    buf_finish(&known->key);
    free(known);
}

/* Returns the number that the body of an environment names; 0: none. */
static uint32_t number_of(const struct document *document)
{
    if (document->kind != DOC_ENVIRONMENT)
        return 0;
    json_t *body = json_tree_read(bytes_slice(document->body), 0, NULL);
    json_int_t number = json_integer_value(json_object_get(body, "number"));
    json_decref(body);
    return number > 0 && number <= NUMBER_MAX ? (uint32_t)number : 0;
}

/* Keeps the key, and references to the document's name and body. */
static void keep(struct followed_memory *memory, const struct document *document,
                 struct buf *key)
{
    struct followed_document *known = mem_new(struct followed_document);
    known->document = *document;
    bytes_ref(known->document.name);
    bytes_ref(known->document.body);
    known->key = *key;
    *key = (struct buf){ 0 };
    known->round = memory->round;
    known->number = number_of(document);
    table_insert(&memory->documents, known);
    if (known->number)
        *slots_at(&memory->of_number, known->number) = known;
}

static void put(struct followed_memory *memory, const struct document *document,
                bool is_newest)
{
    struct buf key = { 0 };
    struct followed_document *known = document_find(memory, document, &key);
    bool is_old = known && !is_newest && document->version < known->document.version;
    if (known && !is_old)
        forget(memory, known);
    if (!is_old && document->body)
        keep(memory, document, &key);
    buf_finish(&key);
}

enum err followed_memory_take(struct followed_memory *memory,
                              const struct document *document, struct failure *why)
{
    if (!document->name)
        return explain(why, ERR_INVALID, "a document of the accounts has no name");
    put(memory, document, false);
    return OK;
}

/* ---- reading all ---- */

static enum err take_read(struct load_documents *load, const struct document *document,
                          struct failure *why)
{
    (void)why;
    put(container_of(load, struct followed_memory, load), document, true);
    return OK;
}

/* A table must not change during a walk, so this collects the documents first. */
static void forget_missing(struct followed_memory *memory)
{
    struct followed_document **missing =
        mem_new_array(struct followed_document *, memory->documents.count);
    size_t at = 0, count = 0;
    for (struct followed_document *known; (known = table_next(&memory->documents, &at));)
        if (known->round != memory->round)
            missing[count++] = known;
    for (size_t i = 0; i < count; i++)
        forget(memory, missing[i]);
    free((void *)missing);
}

static void on_read(struct load_documents *load, enum err status)
{
    struct followed_memory *memory = container_of(load, struct followed_memory, load);
    if (!status)
        forget_missing(memory);
    memory->options.on_read(memory->options.owner, status);
}

void followed_memory_read(struct followed_memory *memory)
{
    memory->round++;
    memory->load = (struct load_documents){ .store = memory->options.store,
                                            .loop = memory->loop,
                                            .env = ENV_INSTALLATION,
                                            .take = take_read,
                                            .done = on_read };
    load_documents_of_accounts(&memory->load);
}

/* ---- environments ---- */

static struct environment *create(struct followed_memory *memory,
                                  const struct followed_document *account)
{
    const struct followed_memory_options *options = &memory->options;
    json_t *body = json_tree_read(bytes_slice(account->document.body), 0, NULL);
    const char *type = json_string_value(json_object_get(body, "type"));
    const char *id = json_string_value(json_object_get(body, "id"));
    bool is_dev = type && !strcmp(type, "dev");
    struct environment *env = NULL;
    if (id && strlen(id) < ID_MAX)
        env = environment_create(memory->loop, options->store, account->number, id, is_dev,
                                 options->budget,
                                 is_dev ? options->dev_concurrency : options->concurrency);
    json_decref(body);
    return env;
}

struct environment *followed_memory_find(struct followed_memory *memory, uint32_t number)
{
    const struct followed_document *account = slots_get(&memory->of_number, number);
    struct environment *env = slots_get(&memory->environments, number);
    if (!env && account)
        *slots_at(&memory->environments, number) = env = create(memory, account);
    return env;
}

/* Returns true if it must be called again, in another turn. */
static bool drop(struct followed_memory *memory, struct environment *env)
{
    if (environment_clear(env))
        return true;
    memory->options.forget(memory->options.owner, env->number);
    *slots_at(&memory->environments, env->number) = NULL;
    environment_destroy(env);
    return false;
}

/* The same. */
static bool trim(struct followed_memory *memory, struct environment *env)
{
    if (memory->options.was_left(memory->options.owner, env->number))
        return drop(memory, env);
    return environment_is_over_budget(env) &&
           environment_evict(env, env->budget - env->budget / 8);
}

static void trim_some(struct deferred *trimming)
{
    struct followed_memory *memory =
        container_of(trimming, struct followed_memory, trimming);
    struct timeslice timeslice = loop_timeslice(memory->loop);
    struct environment *env;
    while (timeslice_left(&timeslice)) {
        uint32_t at = memory->trim_at;
        env = slots_next(&memory->environments, &at);
        if (!env) {
            memory->trim_at = 0;
            return;
        }
        if (!trim(memory, env))
            memory->trim_at = at;
    }
    loop_defer(memory->loop, trimming);
}

void followed_memory_trim(struct followed_memory *memory, struct environment *env)
{
    if (trim(memory, env))
        loop_defer(memory->loop, &memory->trimming);
}

/* ---- making ---- */

/* Returns false once nothing is left. */
static bool drop_next(struct followed_memory *memory)
{
    uint32_t at = 0;
    struct environment *env = slots_next(&memory->environments, &at);
    if (!env)
        return false;
    if (!environment_clear(env)) {
        memory->environments.items[at - 1] = NULL;
        environment_destroy(env);
    }
    return true;
}

static void drop_some(struct deferred *dropping)
{
    struct followed_memory *memory =
        container_of(dropping, struct followed_memory, dropping);
    struct timeslice timeslice = loop_timeslice(memory->loop);
    bool more = true;
    while (more && timeslice_left(&timeslice))
        more = drop_next(memory);
    if (more) {
        loop_defer(memory->loop, dropping);
        return;
    }
    struct followed_memory_options options = memory->options;
    void (*dropped)(void *owner) = memory->dropped;
    memory->round++;
    forget_missing(memory);
    table_finish(&memory->documents);
    slots_finish(&memory->of_number);
    slots_finish(&memory->environments);
    free(memory);
    dropped(options.owner);
}

struct followed_memory *
followed_memory_create(struct loop *loop, const struct followed_memory_options *options)
{
    struct followed_memory *memory = mem_new(struct followed_memory);
    memory->loop = loop;
    memory->options = *options;
    memory->trimming.fn = trim_some;
    list_init(&memory->trimming.link);
    memory->dropping.fn = drop_some;
    list_init(&memory->dropping.link);
    table_init(&memory->documents, key_of);
    return memory;
}

void followed_memory_drop(struct followed_memory *memory, void (*dropped)(void *owner))
{
    memory->dropped = dropped;
    loop_cancel_deferred(&memory->trimming);
    loop_defer(memory->loop, &memory->dropping);
}
