/* timezones.h - the names of time zones that clients are offered. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

/* The names of the table that has() holds for, in one text: "A/B","C/D". Those that it does
 * not hold for are left out: *missing says how many. */
struct bytes *timezones_list(bool (*has)(struct slice name), unsigned *missing);

/* Those that the system has. Warns of others. */
struct bytes *timezones_list_installed(void);
