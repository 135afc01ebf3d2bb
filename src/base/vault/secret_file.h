/* secret_file.h - reads a secret from its own file (RUNCAST_…_FILE, encryption.key). */
#pragma once

#include "base/error.h"

/* Private: rejected if the group or others have access, or if it is a symbolic link.
 * Mounted: its protection is up to the system that mounted it (Docker and Kubernetes show
 * secrets as 0444). */
enum secret_file { SECRET_FILE_PRIVATE, SECRET_FILE_MOUNTED };

/* Returns the file's only line, trimmed and terminated; wipe it with secret_forget.
 * ERR_INVALID: unreadable, empty, more than one line, or more than 4 KiB. */
enum err secret_file_read(const char *path, enum secret_file kind, char **secret,
                          struct failure *why);
