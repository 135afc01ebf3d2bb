/* account_writer.h - changes to accounts, one after the other.
 *
 *   account_write_begin ─► its turn: decide ─► commit ─► into memory ─► done
 *
 * Changes are rare, and each is decided on the result of the one before, so that two calls
 * cannot make the same branch or take the same number. */
#pragma once

#include "accounts/account_draft.h"
#include "base/loop.h"

struct account_writer;
struct account_write;

/* Embedded by the operation. */
struct account_write {
    /* Adds changes to the draft; none at all is fine. An error, with write->why, refuses.
     */
    enum err (*decide)(struct account_write *write, struct accounts *accounts,
                       struct draft *draft);
    /* Once, later. Committed and in memory when OK. */
    void (*done)(struct account_write *write, enum err status);
    struct failure why;
    struct claim
        *claim;       /* the caller's, taken with the changes; its owner is set when decide
                            returns. ERR_CONFLICT when it is taken. NULL: none */
    struct list link; // account_writer::waiting
};

/* Everything borrowed until account_writer_destroy. */
struct account_writer *account_writer_create(struct loop *loop, struct store *store,
                                             struct accounts *accounts);
/* Nothing was begun that is not done. NULL is fine. */
void account_writer_destroy(struct account_writer *writer);

/* fn is told, before the write is done, of every new environment, and of every one that has
 * ended: its branch is archived, its project deleted. Of those that had ended before it may
 * hear again. */
void account_writer_on_environment(struct account_writer *writer,
                                   void (*fn)(void *owner, struct account *account),
                                   void *owner);

/* Nothing is waiting or on its way. */
bool account_writer_idle(const struct account_writer *writer);

void account_write_begin(struct account_writer *writer, struct account_write *write);
