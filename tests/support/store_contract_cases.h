/* store_contract_cases.h - the part of the contract that is about reads. */
#pragma once

#include "tests/support/unit.h"

extern const struct CMUnitTest store_read_cases[];
extern const size_t store_read_case_count;
