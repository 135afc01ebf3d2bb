/* fake_tables.h - the tables of fake_data.c, for the files that share them. */
#pragma once

#include "base/buf.h"
#include "base/table.h"
#include "tests/support/fakes/fake_data.h"

/* The first member of every stored item. */
struct key {
    char *ptr;
    size_t len;
};

struct env {
    struct key key;
    struct store_position position;
    int64_t told;     /* position.stored as reported to store::on_stored */
    struct list runs; /* lowest rev first */
    size_t count;
};

struct stored_run {
    struct key key;
    struct run run;
    struct list link; // env::runs
};

struct stored_document {
    struct key key;
    struct document document;
    uint64_t seq;
    int64_t written_at, stale_at;
};

struct stored_claim {
    struct key key;
    uint32_t env;
    enum claim_kind kind;
    char owner[ID_MAX];
    int64_t expires_at, bytes;
    bool brief;
};

struct stored_number {
    struct key key;
    uint32_t last;
};

struct fake_data {
    struct table envs, runs, documents, claims, numbers;
    struct buf name; /* the key that is looked up */
};

/* Finds the environment or creates it. */
struct env *fake_data_env(struct fake_data *data, uint32_t number);

void fake_data_remove_run(struct fake_data *data, struct env *env,
                          struct stored_run *stored);

/* name: its key. */
void fake_data_drop_document(struct fake_data *data, struct slice name);

/* Bytes that count as stored. */
int64_t fake_data_document_size(const struct document *document);
