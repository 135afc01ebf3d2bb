/* artifacts.h - bundles that are uploaded, until a deployment takes them.
 *
 *   offered ─► being written ─► whole ─► taken: a deployment has a name of its own for the file
 *      ▲             │            │
 *      └── cut ──────┘            └─ nobody took it for 15 minutes: removed
 *
 * One is a file in the folder artifacts of the data directory, whose name says all about it:
 * environment, expiry, length, and the random part of its key. While it is written the name
 * ends in ".part", so what is whole is known again after a restart. Nothing of it is ever whole
 * in memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"

struct loop;

enum {
    ARTIFACT_LIVES_MS = 15 * 60 * 1000,
    ARTIFACT_RANDOM_LEN = 24,
    ARTIFACT_KEY_MAX = 48,           /* "bundles/", the random part, ".tar.gz" and a zero */
    ARTIFACTS_OPEN_MAX = 4,          /* of one environment */
    ARTIFACTS_OPEN_PROJECT_MAX = 16, /* of all environments of a project together */
};

enum artifact_state { ARTIFACT_OFFERED, ARTIFACT_WRITING, ARTIFACT_WHOLE, ARTIFACT_TAKING };

struct artifact {
    char key
        [ARTIFACT_KEY_MAX]; /* "bundles/….tar.gz": the official CLI asks for the first word */
    uint32_t env;           /* its number */
    int64_t length;         /* bytes, exactly */
    int64_t written;        /* bytes of it that are on the disk, while it is not whole */
    int64_t offered_at,
        expires_at; /* Unix ms; of one found at start only the second is known */
    enum artifact_state state;
    struct list link; // artifacts::all
};

struct artifacts;

/* data is the data directory, bytes_max the longest bundle. */
struct artifacts *artifacts_create(struct loop *loop, const char *data, int64_t bytes_max);
/* NULL is fine. Nothing is being written. */
void artifacts_destroy(struct artifacts *artifacts);

/* At start, before anybody is let in: makes the folder, finds what is whole in it, and removes
 * the rest. A file that a deployment has a name for was taken. ERR_INTERNAL with the reason. */
enum err artifacts_start(struct artifacts *artifacts, struct failure *why);

/* No timer is armed any more. */
void artifacts_stop(struct artifacts *artifacts);

int64_t artifacts_bytes_max(const struct artifacts *artifacts);

/* The environments that share limits with one: those of its project. */
struct artifact_sharers {
    bool (*counts)(const void *owner, uint32_t env);
    const void *owner;
};

/* ERR_BUSY: the environment or its project has its maximum of uploads open. Borrowed until it
 * expires. */
enum err artifact_offer(struct artifacts *artifacts, uint32_t env,
                        const struct artifact_sharers *sharers, int64_t length,
                        struct artifact **artifact, struct failure *why);

/* What all that is open of some environments has on the disk, or may have soon. */
size_t artifacts_bytes(const struct artifacts *artifacts,
                       const struct artifact_sharers *sharers);

/* Bytes that were offered, to whatever environments, and are not on the disk yet. */
uint64_t artifacts_reserved(const struct artifacts *artifacts);

/* The folder that bundles are written to; borrowed. */
const char *artifacts_folder(const struct artifacts *artifacts);

/* NULL: unknown, expired, taken, or of another environment. */
struct artifact *artifacts_find(struct artifacts *artifacts, uint32_t env,
                                struct slice key);

/* The path of its file, or of the one that is being written; the caller's. */
char *artifact_path(const struct artifacts *artifacts, const struct artifact *artifact,
                    bool is_part);

/* It is gone from memory; its file is removed. It is not being written or taken. */
void artifact_remove(struct artifacts *artifacts, struct artifact *artifact);

/* What its upload address is signed for. */
void artifact_add_signed(struct buf *out, struct slice key, int64_t length);
