/* accounts_state.h - what accounts.c and account_documents.c share. */
#pragma once

#include "accounts/accounts.h"
#include "base/slots.h"
#include "base/table.h"

enum { ENVIRONMENT_NUMBER_MAX = 1000000 };

struct accounts {
    struct vault *vault;
    struct list organizations, projects, users;
    struct slots by_number;   /* of struct account */
    struct table by_id;       /* struct account */
    struct table branches;    /* struct account; not archived, by branch_key */
    struct table secrets;     /* struct secret; not ended */
    struct list ended;        // secret::of_owner
    struct list gone;         // user::link; identities may point to them
    struct list deleted;      // project::link; the same
    struct list closed;       // organization::link, of deleted ones; projects point to them
    struct organization none; /* of a deleted project whose organization is gone */
    uint32_t noted_number;    /* of accounts_note_number */
    uint64_t endings;
};

struct organization *accounts_find_organization(struct accounts *accounts, const char *id);
/* Finds also a project that is deleted. */
struct project *accounts_find_project(struct accounts *accounts, const char *id);
struct user *accounts_find_user(struct accounts *accounts, const char *id);

/* Finds a secret by its hash, also one whose time is over. */
struct secret *accounts_find_secret(const struct accounts *accounts,
                                    const unsigned char hash[HASH_LEN]);
/* The secret leaves the tables, and its clear text is wiped. */
void accounts_end_secret(struct accounts *accounts, struct secret *secret);
