/* accounts_state.h - the struct that accounts.c and account_documents.c share. */
#pragma once

#include "accounts/accounts.h"
#include "base/slots.h"
#include "base/table.h"

enum { ENVIRONMENT_NUMBER_MAX = 1000000 };

struct accounts {
    struct vault *vault;
    struct list organizations, projects, users;
    struct slots by_number; /* of struct account */
    struct table by_id;     /* struct account, by id */
    struct table branches;  /* struct account, by branch_key; only open ones */
    struct table secrets;   /* struct secret, by hash; only those not removed */
    struct list ended;      // secret::of_owner; worker tokens: builders point to them
    struct list gone;       // user::link; identities may point to them
    struct list deleted;    // project::link; the same
    struct list closed;     // organization::link, of deleted ones; projects point to them
    /* stands in for the organization of a deleted project if that is gone */
    struct organization none;
    uint32_t noted_number; /* from accounts_note_number */
    uint64_t endings;
};

struct organization *accounts_find_organization(struct accounts *accounts, const char *id);
/* Also finds a deleted project. */
struct project *accounts_find_project(struct accounts *accounts, const char *id);
struct user *accounts_find_user(struct accounts *accounts, const char *id);

/* Finds a secret by its hash, even after its end time. */
struct secret *accounts_find_secret(const struct accounts *accounts,
                                    const unsigned char hash[HASH_LEN]);
/* Reads the hex digits of a hash. */
bool accounts_read_hash(const char *text, unsigned char hash[HASH_LEN]);
/* Finds a personal token by the name of its document. */
struct secret *accounts_find_token(const struct accounts *accounts, const char *document);
/* Removes the secret from the tables, wipes its clear text, and frees it with its last
 * reference. */
void accounts_end_secret(struct accounts *accounts, struct secret *secret);
