/* followed_accounts.c - knows the version of each document of the accounts in memory.
 *
 *   absent ─► staged ─► in memory ─► staged again ─► in memory ─► … ─► removed */
#include "accounts/followed_accounts.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json/json_tree.h"
#include "base/mem.h"
#include "base/table.h"

enum { AT_ONCE = 16 }; /* documents or environments per check of the clock */

struct followed_document {
    struct buf key; /* kind and name */
    enum document_kind kind;
    struct bytes *name;
    uint32_t version; /* in memory; 0: it is not */
    uint64_t hash;    /* of the body in memory */
    unsigned round;   /* of followed_accounts::round, when it was read last */
    bool is_staged;
    struct document staged; /* body NULL: it is removed */
    struct list link;       // followed_accounts::known, ::added or ::applied
};

struct followed_accounts {
    struct loop *loop;
    struct accounts *accounts;
    struct account_writer *writer;
    struct table documents; // of struct followed_document, by key
    /* followed_document::link. Staged: those that memory has, and new ones. Applied, but not
     * reported yet. */
    struct list known, added, applied;
    unsigned round;    /* counts the reads of all documents */
    bool are_there;    /* they were settled once */
    bool are_of_other; /* followed_accounts_begin_history: what is staged may be older */
    bool lacks_key; /* a document was sealed with an encryption key that the vault lacks */
    uint32_t reported; /* of the first time: the last environment that was reported */
};

static struct slice key_of(const void *value)
{
    return buf_slice(&((const struct followed_document *)value)->key);
}

struct followed_accounts *followed_accounts_create(struct loop *loop,
                                                   struct accounts *accounts,
                                                   struct account_writer *writer)
{
    struct followed_accounts *followed = mem_new(struct followed_accounts);
    followed->loop = loop;
    followed->accounts = accounts;
    followed->writer = writer;
    table_init(&followed->documents, key_of);
    list_init(&followed->known);
    list_init(&followed->added);
    list_init(&followed->applied);
    return followed;
}

bool followed_accounts_are_there(const struct followed_accounts *followed)
{
    return followed->are_there;
}

bool followed_accounts_lack_key(const struct followed_accounts *followed)
{
    return followed->lacks_key;
}

/* ---- staging ---- */

static void unstage(struct followed_document *one)
{
    if (one->is_staged)
        document_finish(&one->staged);
    one->is_staged = false;
    list_remove(&one->link);
}

static void forget(struct followed_accounts *followed, struct followed_document *one)
{
    unstage(one);
    table_remove(&followed->documents, buf_slice(&one->key));
    bytes_unref(one->name);
    buf_finish(&one->key);
    free(one);
}

void followed_accounts_destroy(struct followed_accounts *followed)
{
    size_t at = 0;
    if (!followed)
        return;
    for (struct followed_document *one; (one = table_next(&followed->documents, &at));) {
        unstage(one);
        bytes_unref(one->name);
        buf_finish(&one->key);
        free(one);
    }
    table_finish(&followed->documents);
    free(followed);
}

/* Takes ownership of key. */
static struct followed_document *add(struct followed_accounts *followed,
                                     const struct document *document, struct buf *key)
{
    struct followed_document *one = mem_new(struct followed_document);
    one->key = *key;
    one->kind = document->kind;
    one->name = bytes_ref(document->name);
    list_init(&one->link);
    table_insert(&followed->documents, one);
    *key = (struct buf){ 0 };
    return one;
}

/* Returns NULL for the removal of an unknown document. */
static struct followed_document *find_or_add(struct followed_accounts *followed,
                                             const struct document *document)
{
    struct buf key = { 0 };
    buf_print(&key, "%d:", document->kind);
    buf_add(&key, bytes_slice(document->name));
    struct followed_document *one = table_find(&followed->documents, buf_slice(&key));
    if (!one && document->body)
        one = add(followed, document, &key);
    buf_finish(&key);
    return one;
}

static uint64_t hash_of(const struct document *document)
{
    return document->body ? table_hash(bytes_slice(document->body)) : 0;
}

static bool is_in_memory(const struct followed_accounts *followed,
                         const struct followed_document *one,
                         const struct document *document)
{
    if (followed->are_of_other)
        return document->version == one->version && hash_of(document) == one->hash;
    return document->version <= one->version;
}

static void stage(struct followed_accounts *followed, struct followed_document *one,
                  const struct document *document)
{
    bool is_older = one->is_staged && document->version <= one->staged.version;
    if (is_older || is_in_memory(followed, one, document))
        return;
    unstage(one);
    one->staged = *document;
    bytes_ref(one->staged.name);
    bytes_ref(one->staged.body);
    one->is_staged = true;
    list_append(one->version ? &followed->known : &followed->added, &one->link);
}

void followed_accounts_take(struct followed_accounts *followed,
                            const struct document *document)
{
    struct followed_document *one = find_or_add(followed, document);
    if (one)
        stage(followed, one, document);
}

static void unstage_all(struct list *list, struct followed_accounts *followed)
{
    while (!list_empty(list)) {
        struct followed_document *one =
            container_of(list->next, struct followed_document, link);
        unstage(one);
        if (!one->version)
            forget(followed, one);
    }
}

void followed_accounts_begin_history(struct followed_accounts *followed)
{
    followed->are_of_other = true;
}

void followed_accounts_begin_read(struct followed_accounts *followed)
{
    unstage_all(&followed->known, followed);
    unstage_all(&followed->added, followed);
    followed->round++;
}

void followed_accounts_read(struct followed_accounts *followed,
                            const struct document *document)
{
    struct followed_document *one = find_or_add(followed, document);
    if (!one)
        return;
    one->round = followed->round;
    stage(followed, one, document);
}

void followed_accounts_end_read(struct followed_accounts *followed)
{
    size_t at = 0;
    for (struct followed_document *one; (one = table_next(&followed->documents, &at));) {
        struct document removal = { .kind = one->kind,
                                    .name = one->name,
                                    .version = one->version + 1 };
        if (one->round != followed->round)
            stage(followed, one, &removal);
    }
}

/* ---- putting into effect ---- */

/* The leader may have sealed the keys again: with the next key, or with one that the vault
 * lacks. */
static void follow_rotation(struct followed_accounts *followed,
                            const struct document *document)
{
    struct vault *vault = accounts_vault(followed->accounts);
    if (document->kind != DOC_KEY || !document->body)
        return;
    json_t *body = json_tree_read(bytes_slice(document->body), 0, NULL);
    const char *sealed = json_string_value(json_object_get(body, "sealed"));
    if (sealed) {
        vault_rotation_follow(vault, slice_of(sealed));
        followed->lacks_key |= !vault_has_key_of(vault, slice_of(sealed));
    }
    json_decref(body);
}

/* A document that is refused stays unknown, or as it was: the next read stages it again. */
static enum err apply(struct followed_accounts *followed, struct followed_document *one,
                      struct failure *why)
{
    struct change change = { .kind = CHANGE_DOCUMENT,
                             .expected = one->version,
                             .document = one->staged };
    follow_rotation(followed, &one->staged);
    enum err refused = accounts_apply(followed->accounts, &change, why);
    list_remove(&one->link);
    list_append(&followed->applied, &one->link);
    if (!refused) {
        one->version = one->staged.version;
        one->hash = hash_of(&one->staged);
    }
    return refused;
}

/* Applies all, even after an error, because accounts in use must be linked. why is the reason
 * of the first error. */
static enum err apply_list(struct followed_accounts *followed, struct list *staged,
                           struct timeslice *timeslice, struct failure *why)
{
    enum err err = OK;
    while (!list_empty(staged) &&
           (followed->are_there || timeslice_left_every(timeslice, AT_ONCE))) {
        struct failure reason;
        enum err refused = apply(
            followed, container_of(staged->next, struct followed_document, link), &reason);
        if (refused && !err)
            *why = reason;
        err = err ? err : refused;
    }
    return err;
}

static void report_applied(struct followed_accounts *followed)
{
    while (!list_empty(&followed->applied)) {
        struct followed_document *one =
            container_of(followed->applied.next, struct followed_document, link);
        if (followed->are_there)
            account_writer_report(followed->writer, &one->staged);
        if (one->staged.body && one->version)
            unstage(one);
        else
            forget(followed, one);
    }
}

/* Reports the environments of the first time. Returns false if it must be called again. */
static bool report_first(struct followed_accounts *followed, struct timeslice *timeslice)
{
    while (timeslice_left_every(timeslice, AT_ONCE)) {
        const struct account *last =
            accounts_by_number(followed->accounts, followed->reported);
        struct account *account = accounts_next(followed->accounts, last);
        if (!account)
            return true;
        followed->reported = account->number;
        account_writer_report_environment(followed->writer, account);
    }
    return false;
}

/* Changes of known documents come first: the name of an archived branch may be used again. */
static enum err apply_staged(struct followed_accounts *followed,
                             struct timeslice *timeslice, struct failure *why)
{
    struct failure reason;
    enum err err = apply_list(followed, &followed->known, timeslice, why);
    enum err refused = apply_list(followed, &followed->added, timeslice, &reason);
    if (refused && !err)
        *why = reason;
    return err ? err : refused;
}

static enum err link_applied(struct followed_accounts *followed, struct failure *why)
{
    struct failure reason;
    if (list_empty(&followed->applied))
        return OK;
    enum err refused = accounts_link(followed->accounts, &reason);
    if (refused)
        *why = reason;
    report_applied(followed);
    return refused;
}

static bool is_credential(enum document_kind kind)
{
    return kind == DOC_KEY || kind == DOC_TOKEN || kind == DOC_WORKER_TOKEN;
}

/* Environments, and what they belong to, go only forward: none that was deleted returns. */
static enum err check_history(const struct followed_accounts *followed, struct failure *why)
{
    list_each (link, &followed->known)
        if (!is_credential(container_of(link, struct followed_document, link)->kind))
            return explain(why, ERR_MOVED, "the accounts are of another history");
    return OK;
}

enum err followed_accounts_settle(struct followed_accounts *followed, bool *more,
                                  struct failure *why)
{
    struct timeslice timeslice = loop_timeslice(followed->loop);
    enum err err = followed->are_of_other ? check_history(followed, why) : OK;
    if (err)
        return err;
    err = apply_staged(followed, &timeslice, why);
    *more = !err && !list_empty(&followed->added);
    if (*more)
        return OK;
    enum err refused = link_applied(followed, why);
    err = err ? err : refused;
    if (!err)
        followed->are_of_other = false;
    if (!err && !followed->are_there)
        followed->are_there = report_first(followed, &timeslice);
    *more = !err && !followed->are_there;
    return err;
}
