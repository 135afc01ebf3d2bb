/* artifacts.h - uploaded bundles, until a deployment takes them.
 *
 *   offered ─► being written ─► complete ─► taken: the file gets a second name
 *      ▲            │              │
 *      └── failed ──┘              └─ not taken for 15 minutes: removed
 *
 * Each bundle is a file in the data directory's folder "artifacts". The file's name
 * contains the environment, the expiry, the length and the random part of the key. It ends
 * in ".part" while being written, so complete bundles are recognized after a restart. A
 * bundle is never in memory as a whole. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"

struct loop;

enum {
    ARTIFACT_TTL_MS = 15 * 60 * 1000,
    ARTIFACT_RANDOM_LEN = 24,
    ARTIFACT_KEY_MAX = 48,  /* "bundles/", the random part, ".tar.gz" and a zero */
    ARTIFACTS_OPEN_MAX = 4, /* per environment */
    /* For all preview branches of a project. A project thus has 16: prod and staging have
     * four each, which branches cannot use up. */
    ARTIFACTS_OPEN_BRANCHES_MAX = 8,
};

enum artifact_state { ARTIFACT_OFFERED, ARTIFACT_WRITING, ARTIFACT_WHOLE, ARTIFACT_TAKING };

struct artifact {
    /* "bundles/….tar.gz"; the official CLI requires "bundles/" */
    char key[ARTIFACT_KEY_MAX];
    uint32_t env;                   /* number of the environment */
    int64_t length;                 /* exact size in bytes */
    int64_t written;                /* bytes on the disk, while it is not complete */
    int64_t offered_at, expires_at; /* Unix ms; offered_at is 0 for one found at startup */
    enum artifact_state state;
    struct list link; // artifacts::all
};

struct artifacts;

/* data: the data directory. bytes_max: the largest bundle. */
struct artifacts *artifacts_create(struct loop *loop, const char *data, int64_t bytes_max);
/* Requires that no upload is being written. Ignores NULL. */
void artifacts_destroy(struct artifacts *artifacts);

/* Call this at startup, before requests are accepted. Creates the folder, finds complete
 * bundles in it, and removes all other files. A file with a second name was taken by a
 * deployment. Returns ERR_INTERNAL with why. */
enum err artifacts_start(struct artifacts *artifacts, struct failure *why);

/* Stops the timer. */
void artifacts_stop(struct artifacts *artifacts);

int64_t artifacts_bytes_max(const struct artifacts *artifacts);

/* Which environments share limits with one. */
struct artifact_sharers {
    /* Returns true for those of its project. */
    bool (*of_project)(const void *owner, uint32_t env);
    /* Returns true if both are preview branches of one project. */
    bool (*of_branches)(const void *owner, uint32_t env);
    const void *owner;
};

/* Opens an upload. Returns ERR_BUSY if the environment has too many open, or the preview
 * branches of its project have. *artifact is valid until it expires. */
enum err artifact_offer(struct artifacts *artifacts, uint32_t env,
                        const struct artifact_sharers *sharers, int64_t length,
                        struct artifact **artifact, struct failure *why);

/* Returns the bytes that the open uploads of some environments take, or may soon take. */
size_t artifacts_bytes(const struct artifacts *artifacts,
                       const struct artifact_sharers *sharers);

/* Returns the bytes that were offered to any environment but are not on the disk yet. */
uint64_t artifacts_reserved(const struct artifacts *artifacts);

/* Returns the folder of the bundles; valid as long as artifacts is. */
const char *artifacts_folder(const struct artifacts *artifacts);

/* Returns an open upload; NULL if it is unknown, expired, taken, or belongs to another
 * environment. */
struct artifact *artifacts_find(struct artifacts *artifacts, uint32_t env,
                                struct slice key);

/* Returns the path of its file, or of the file being written; the caller frees it. */
char *artifact_path(const struct artifacts *artifacts, const struct artifact *artifact,
                    bool is_part);

/* Forgets the bundle and removes its file, which must not be in the process of being
 * written or taken. */
void artifact_remove(struct artifacts *artifacts, struct artifact *artifact);

/* Appends the text that an upload URL signs. */
void artifact_add_signed(struct buf *out, struct slice key, int64_t length);
