/* entry.h - declares a test file's main under the name that the build gives it.
 *
 * The build includes it first in every file of a program that holds several tests. */
#pragma once

#ifdef ENTRY
int ENTRY(void);
#endif
