/* unit.h - cmocka with the headers it needs before it.
 *
 * cmocka defines fail() and skip() as macros, so no function of ours has these names. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A random test draws this many cases: all of them in a full run, otherwise a third. */
static inline int cases_to_draw(int all)
{
    return getenv("TESTS_IN_FULL") ? all : all / 3;
}
