/* data_directory.h - opens the data directory and checks who may write to it. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Checks that the directory is ours or root's and that others cannot write to it, because
 * they could replace the database and its key. If the directory is ours, revokes the
 * group's write access. make: create a missing one, accessible only to us. ERR_INVALID with
 * what to do; ERR_NOT_FOUND: it is missing. */
enum err gateway_directory_open(const char *path, bool make, struct failure *why);
