/* timezones.h - the list of time zone names that GET /api/v1/timezones returns. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

/* Returns the table's names for which has() returns true, as one text: "A/B","C/D".
 * *missing: the number of the others. The caller's reference. */
struct bytes *timezones_list(bool (*has)(struct slice name), unsigned *missing);

/* Returns the names that the system has. Logs a warning if some are missing. */
struct bytes *timezones_list_installed(void);
