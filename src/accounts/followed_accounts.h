/* followed_accounts.h - takes the leader's accounts into the memory of a gateway that follows
 * it.
 *
 *   document of the stream ──┐
 *                            ├─► staged, the newest of each name ─► settle ─► struct accounts
 *   all documents, read ─────┘                                         └► account_writer_report
 *
 * Documents that were written together are only right together: a new environment needs its
 * key. So they are staged until all of them are there, and take effect in one turn. Those that
 * are older than the ones in memory are ignored, so a revoked key never becomes valid again.
 *
 * Nothing is decided or written. When this gateway takes the lead, its accounts are complete. */
#pragma once

#include "accounts/account_writer.h"

struct followed_accounts;

/* Arguments are borrowed until followed_accounts_destroy. */
struct followed_accounts *followed_accounts_create(struct loop *loop,
                                                   struct accounts *accounts,
                                                   struct account_writer *writer);
/* The accounts stay. Ignores NULL. */
void followed_accounts_destroy(struct followed_accounts *followed);

/* Stages a document of the stream. Borrows it. */
void followed_accounts_take(struct followed_accounts *followed,
                            const struct document *document);

/* The documents that are read next are of another history than those in memory: they count
 * although they may be older, until they were settled. */
void followed_accounts_begin_history(struct followed_accounts *followed);

/* All documents of the database follow: forgets those that were staged. */
void followed_accounts_begin_read(struct followed_accounts *followed);

/* Stages a document that was read from the database. Borrows it. */
void followed_accounts_read(struct followed_accounts *followed,
                            const struct document *document);

/* The read has ended: stages the removal of documents that the database does not have. */
void followed_accounts_end_read(struct followed_accounts *followed);

/* Puts staged documents into effect. At the first time there are many, so this stops when the
 * turn's time is used up, and then sets *more: call it again. ERR_INVALID, with the reason: a
 * document is damaged, or refers to one that does not exist. ERR_MOVED: in another history, more
 * than credentials and new documents differ, so memory cannot be used. */
enum err followed_accounts_settle(struct followed_accounts *followed, bool *more,
                                  struct failure *why);

/* Returns true if the leader has rotated the encryption key, and this gateway lacks the new one:
 * it could neither read nor store what is sealed. */
bool followed_accounts_lack_key(const struct followed_accounts *followed);

/* Returns true once the accounts of a database are in effect. */
bool followed_accounts_are_there(const struct followed_accounts *followed);
