/* documents.c - writes documents, all or none: one commit, applied like any other. */
#include "core/engine/calls.h"

/* Keeps the environments of the changes in memory until the write is done. Some changes
 * have none: they belong to the installation, or to a branch that has left memory. */
static void hold_each(struct document_write *write)
{
    for (size_t i = 0; i < write->commit.change_count; i++) {
        struct environment *env =
            engine_environment(write->engine, write->commit.changes[i].env);
        if (env)
            environment_hold(env);
    }
}

static void release_each(struct document_write *write)
{
    for (size_t i = 0; i < write->commit.change_count; i++) {
        struct environment *env =
            engine_environment(write->engine, write->commit.changes[i].env);
        if (env)
            environment_release(env);
    }
}

static void on_written(struct store_commit *commit, enum store_status status)
{
    struct document_write *write = container_of(commit, struct document_write, commit);
    release_each(write); /* nothing leaves memory before the turn ends */
    if (status == STORE_OK)
        engine_apply(write->engine, commit->changes, commit->change_count);
    for (size_t i = 0; status != STORE_OK && i < commit->change_count; i++)
        change_finish(&commit->changes[i]);
    list_remove(&write->link);
    write->done(write, err_of_store(status));
}

void documents_write_begin(struct engine *engine, struct change *changes, size_t count,
                           struct document_write *write,
                           void (*done)(struct document_write *write, enum err status))
{
    write->engine = engine;
    write->done = done;
    write->commit = (struct store_commit){ .changes = changes,
                                           .change_count = count,
                                           .claims = write->claim,
                                           .claim_count = write->claim ? 1 : 0,
                                           .now_ms = loop_wall_ms(engine->loop),
                                           .done = on_written };
    hold_each(write);
    list_append(&engine->writes, &write->link);
    engine->store->ops->commit(engine->store, &write->commit);
}

void document_write_begin(struct engine *engine, uint32_t env, enum document_kind kind,
                          struct bytes *name, struct bytes *body, uint32_t expected,
                          struct document_write *write,
                          void (*done)(struct document_write *write, enum err status))
{
    *write = (struct document_write){ 0 };
    write->change = (struct change){ .kind = CHANGE_DOCUMENT,
                                     .env = env,
                                     .expected = expected,
                                     .document = { .kind = kind,
                                                   .env = env,
                                                   .name = bytes_ref(name),
                                                   .body = bytes_ref(body) } };
    documents_write_begin(engine, &write->change, 1, write, done);
}
