/* secret_file.h - a secret that lies in a file of its own (RUNCAST_…_FILE, encryption.key).
 */
#pragma once

#include "base/error.h"

/* Private: refused when the group or others may touch it, or it is a link. Mounted: how it is
 * protected is up to whoever mounted it (Docker and Kubernetes show secrets as 0444). */
enum secret_file { SECRET_FILE_PRIVATE, SECRET_FILE_MOUNTED };

/* The one line of the file without the white space around it, terminated, the caller's to
 * secret_forget. ERR_INVALID: unreadable, empty, more than one line or than 4 KiB. */
enum err secret_file_read(const char *path, enum secret_file kind, char **secret,
                          struct failure *why);
