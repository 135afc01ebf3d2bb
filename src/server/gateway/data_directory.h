/* data_directory.h - opens the data directory and checks who may write in it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Checks that the directory is ours or root's and that others cannot write in it, as they
 * could replace the database and its key. Revokes write access of the group if the
 * directory is ours. make: create a missing one, with access for us only. ERR_INVALID with
 * what to do; ERR_NOT_FOUND: it is missing. */
enum err gateway_directory_open(const char *path, bool make, struct failure *why);
