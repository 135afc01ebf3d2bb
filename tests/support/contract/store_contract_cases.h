/* store_contract_cases.h - the cases of each store_contract_*.c, and helpers for them. */
#pragma once

#include "tests/support/contract/store_contract.h"

extern const struct CMUnitTest store_list_cases[];
extern const size_t store_list_case_count;
extern const struct CMUnitTest store_read_cases[];
extern const size_t store_read_case_count;
extern const struct CMUnitTest store_walk_cases[];
extern const size_t store_walk_case_count;
extern const struct CMUnitTest store_piece_cases[];
extern const size_t store_piece_case_count;
extern const struct CMUnitTest store_stored_cases[];
extern const size_t store_stored_case_count;
extern const struct CMUnitTest store_report_cases[];
extern const size_t store_report_case_count;
extern const struct CMUnitTest store_group_cases[];
extern const size_t store_group_case_count;
extern const struct CMUnitTest store_byte_cases[];
extern const size_t store_byte_case_count;

struct waiting_list {
    struct store_list req;
    bool answered;
};

/* Lists everything in the environment, at most 100. */
struct waiting_list list_of(uint32_t env);

/* Lists, and compares with the numbers of the runs: "3 2 1". */
void assert_list(struct store_world *world, struct waiting_list *waiting,
                 const char *expected);

struct waiting_walk {
    struct store_walk req;
    bool answered;
};

/* A page of a start's walk, after the rev of the request; limit 0: 100. */
void walk_unfinished(struct store_world *world, struct waiting_walk *waiting);

void name_runs(const struct run *runs, size_t count, char out[256]);
void drop_runs(struct run *runs, size_t count);
struct tag_list *tags_of(const char *first, const char *second);

/* Executes the purge on the first environment, and returns it with its results. */
struct store_purge purge_of(struct store_world *world, struct store_purge wish);

/* Nine runs: tasks a b c a b c …, tags by n, two in a batch, the odd ones finished; and one
 * in the other environment. */
void fill_runs(struct store_world *world);
