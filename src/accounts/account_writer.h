/* account_writer.h - commits changes to accounts, one after the other.
 *
 *   account_write_begin ─► its turn: decide ─► commit ─► into memory ─► done
 *
 * Changes are rare. Each is decided on the result of the one before it, so that two
 * requests cannot create the same branch or use the same number. */
#pragma once

#include "accounts/account_draft.h"
#include "base/loop.h"

struct account_writer;
struct account_write;

/* One write. The caller embeds it. */
struct account_write {
    /* Adds changes to the draft, possibly none. An error, with write->why, rejects the
     * write. */
    enum err (*decide)(struct account_write *write, struct accounts *accounts,
                       struct draft *draft);
    /* Called once, later. OK: the changes are committed and in memory. */
    void (*done)(struct account_write *write, enum err status);
    struct failure why;
    /* Idempotency claim of the caller, committed with the changes; NULL: none.
     *
     * Its owner must be set when decide returns OK. done gets ERR_CONFLICT if it is taken,
     * also if decide returned ERR_RULE: the first request may have reached a limit. */
    struct claim *claim;
    struct list link; // account_writer::waiting
};

/* All arguments are borrowed until account_writer_destroy. */
struct account_writer *account_writer_create(struct loop *loop, struct store *store,
                                             struct accounts *accounts);
/* Requires that every write has finished. Ignores NULL. */
void account_writer_destroy(struct account_writer *writer);

/* Calls fn for each environment that is new or has ended, before the write is done.
 *
 * An environment ends when its branch is archived or its project deleted. fn may be called
 * again for one that had ended before. */
void account_writer_on_environment(struct account_writer *writer,
                                   void (*fn)(void *owner, struct account *account),
                                   void *owner);

/* Calls the same function for the environments that a document of the accounts concerns, because
 * another gateway wrote it, and it is in memory now. */
void account_writer_report(struct account_writer *writer, const struct document *document);

/* Calls it for one environment, unless that is forgotten. */
void account_writer_report_environment(struct account_writer *writer,
                                       struct account *account);

/* Calls fn for each change, in order, right before it is applied. Its seq is 0 if the commit
 * seemed to have failed, so that its number is unknown. One listener; fn NULL: none. */
void account_writer_on_change(struct account_writer *writer,
                              void (*fn)(void *owner, const struct change *change),
                              void *owner);

/* Returns true if no write is waiting or in progress. */
bool account_writer_idle(const struct account_writer *writer);

void account_write_begin(struct account_writer *writer, struct account_write *write);
