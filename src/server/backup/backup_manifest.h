/* backup_manifest.h - the list of files in a backup, with their hashes.
 *
 *   {"format":1,"runcast":"0.1.0","schema":13,"epoch":"…","madeAt":"…","key":"1a2b3c4d",
 *    "holdsKey":true,"files":[{"name":"runcast.db","bytes":8192,"sha256":"…"},…]}
 *
 * It is written last, and checked before any of the backup is used. It may be forged, so
 * only these names are valid, and none can lead out of the folder.
 *
 *   runcast.db                            the database, in one file
 *   encryption.key, .next, .1a2b3c4d      its keys, if they were in the data directory
 *   deployments/ID.tar.gz, .index.json, .log
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vault/vault.h"
#include "server/backup/file_pass.h"

enum {
    BACKUP_NAME_MAX = 80,
    BACKUP_FILES_MAX = 1000000,
    BACKUP_MANIFEST_BYTES_MAX = 256 << 20,
};

struct backup_file {
    char name[BACKUP_NAME_MAX];
    struct file_facts facts;
};

struct backup_manifest {
    char runcast[32]; /* version that made it */
    int64_t schema;
    char epoch[17];
    int64_t made_at;           /* Unix ms; has all commits made before */
    char key[KEY_ID_TEXT_MAX]; /* id of the key that sealed the data; "": unknown */
    bool holds_key;
    struct backup_file *files; /* owned */
    size_t count, capacity;
};

/* Accepts a zeroed manifest. */
void backup_manifest_finish(struct backup_manifest *manifest);

/* Returns true if the name is one of those above. */
bool backup_name_is_right(struct slice name);

void backup_manifest_add(struct backup_manifest *manifest, const char *name,
                         const struct file_facts *facts);

/* Returns NULL if there is none. */
const struct backup_file *backup_manifest_find(const struct backup_manifest *manifest,
                                               const char *name);

/* Returns the sum of the sizes of its files. */
uint64_t backup_manifest_bytes(const struct backup_manifest *manifest);

void backup_manifest_write(const struct backup_manifest *manifest, struct buf *out);

/* ERR_INVALID with the reason: not a manifest, a newer format, an invalid or repeated name,
 * or no database among its files. */
enum err backup_manifest_read(struct slice text, struct backup_manifest *manifest,
                              struct failure *why);
