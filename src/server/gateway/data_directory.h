/* data_directory.h - the data directory: whose it is, and who else may write in it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Whoever can write in the directory can replace the database and its key: it is ours or
 * root's, and others may not write in it. A group that may is kept out of a directory of
 * ours. Makes one that is not there, for us alone, if it is to be made. ERR_INVALID with
 * what to do; ERR_NOT_FOUND: it is not there. */
enum err gateway_directory_open(const char *path, bool make, struct failure *why);
