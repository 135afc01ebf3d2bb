/* unit.h - cmocka with the headers it needs before it.
 *
 * cmocka defines fail() and skip() as macros, so no function of ours has these names. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
