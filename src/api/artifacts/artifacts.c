/* artifacts.c - the list of open uploads, and the names of their files.
 *
 *   artifacts/<environment>.<expires, s>.<length>.<random>        complete
 *   artifacts/<environment>.<expires, s>.<length>.<random>.part   being written */
#include "api/artifacts/artifacts.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/artifacts/bundle_file.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/text.h"

enum {
    EVERY_MS = 60 * 1000,
    UNUSED_MS = 60 * 1000, /* after this, an unused offer is replaced by a new one */
};

static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
static const char first_word[] = "bundles/", ending[] = ".tar.gz";

struct artifacts {
    struct loop *loop;
    char *folder;
    int64_t bytes_max;
    struct list all; // artifact::link; oldest first
    struct timer timer;
    uint32_t kind;
};

static void on_time(struct timer *timer);

struct artifacts *artifacts_create(struct loop *loop, const char *data, int64_t bytes_max)
{
    struct artifacts *artifacts = mem_new(struct artifacts);
    struct buf folder = { 0 };
    buf_print(&folder, "%s/artifacts", data);
    artifacts->loop = loop;
    artifacts->folder = mem_text(buf_slice(&folder));
    artifacts->bytes_max = bytes_max;
    list_init(&artifacts->all);
    artifacts->kind = timers_kind(loop_timers(loop), on_time);
    buf_finish(&folder);
    return artifacts;
}

static void forget(struct artifact *artifact)
{
    list_remove(&artifact->link);
    free(artifact);
}

void artifacts_stop(struct artifacts *artifacts)
{
    timers_clear(loop_timers(artifacts->loop), &artifacts->timer);
}

void artifacts_destroy(struct artifacts *artifacts)
{
    if (!artifacts)
        return;
    artifacts_stop(artifacts);
    while (!list_empty(&artifacts->all))
        forget(container_of(artifacts->all.next, struct artifact, link));
    free(artifacts->folder);
    free(artifacts);
}

int64_t artifacts_bytes_max(const struct artifacts *artifacts)
{
    return artifacts->bytes_max;
}

/* ---- names ---- */

static struct slice random_of(const struct artifact *artifact)
{
    return (struct slice){ artifact->key + sizeof(first_word) - 1, ARTIFACT_RANDOM_LEN };
}

static void set_key(struct artifact *artifact, struct slice random)
{
    snprintf(artifact->key, sizeof(artifact->key), "%s%.*s%s", first_word,
             SLICE_ARG(random), ending);
}

char *artifact_path(const struct artifacts *artifacts, const struct artifact *artifact,
                    bool is_part)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%u.%" PRId64 ".%" PRId64 ".%.*s%s", artifacts->folder,
              artifact->env, artifact->expires_at / 1000, artifact->length,
              SLICE_ARG(random_of(artifact)), is_part ? ".part" : "");
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    return text;
}

void artifact_add_signed(struct buf *out, struct slice key, int64_t length)
{
    buf_print(out, "artifact:%" PRId64 ":%.*s", length, SLICE_ARG(key));
}

/* Reads the name of a complete bundle. Returns false if it is malformed. */
static bool read_name(struct slice name, struct artifact *artifact)
{
    struct slice env, expires, length, random;
    uint64_t number;
    int64_t seconds;
    bool has_parts = slice_split(&name, '.', &env) && slice_split(&name, '.', &expires) &&
                     slice_split(&name, '.', &length) && slice_split(&name, '.', &random);
    if (!has_parts || name.ptr || random.len != ARTIFACT_RANDOM_LEN ||
        text_to_u64(env, &number) || number > UINT32_MAX ||
        text_to_i64(expires, &seconds) || seconds > INT64_MAX / 1000 ||
        text_to_i64(length, &artifact->length))
        return false;
    artifact->env = (uint32_t)number;
    artifact->expires_at = seconds * 1000;
    set_key(artifact, random);
    return true;
}

/* ---- at start ---- */

static void take_file(struct artifacts *artifacts, int folder, const char *name)
{
    struct artifact *artifact = mem_new(struct artifact);
    struct stat file;
    bool is_kept = read_name(slice_of(name), artifact) &&
                   !fstatat(folder, name, &file, 0) && S_ISREG(file.st_mode) &&
                   file.st_nlink == 1 && file.st_size == artifact->length &&
                   artifact->expires_at > loop_wall_ms(artifacts->loop);
    if (is_kept) {
        artifact->state = ARTIFACT_WHOLE;
        list_append(&artifacts->all, &artifact->link);
        return;
    }
    free(artifact);
    unlinkat(folder, name, 0);
}

enum err artifacts_start(struct artifacts *artifacts, struct failure *why)
{
    int made = mkdir(artifacts->folder, 0700);
    DIR *folder = made && errno != EEXIST ? NULL : opendir(artifacts->folder);
    if (!folder)
        return explain(why, ERR_INTERNAL, "cannot open %s: %s", artifacts->folder,
                       strerror(errno));
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            take_file(artifacts, dirfd(folder), entry->d_name);
    closedir(folder);
    loop_set_timer(artifacts->loop, &artifacts->timer, artifacts->kind, EVERY_MS);
    return OK;
}

/* ---- the bundles ---- */

void artifact_remove(struct artifacts *artifacts, struct artifact *artifact)
{
    if (artifact->state == ARTIFACT_WHOLE) {
        char *path = artifact_path(artifacts, artifact, false);
        file_remove(artifacts->loop, path);
        free(path);
    }
    forget(artifact);
}

static bool is_busy(const struct artifact *artifact)
{
    return artifact->state == ARTIFACT_WRITING || artifact->state == ARTIFACT_TAKING;
}

static void remove_expired(struct artifacts *artifacts)
{
    int64_t now = loop_wall_ms(artifacts->loop);
    list_each (link, &artifacts->all) {
        struct artifact *artifact = container_of(link, struct artifact, link);
        if (!is_busy(artifact) && artifact->expires_at <= now)
            artifact_remove(artifacts, artifact);
    }
}

static void on_time(struct timer *timer)
{
    struct artifacts *artifacts = container_of(timer, struct artifacts, timer);
    remove_expired(artifacts);
    loop_set_timer(artifacts->loop, timer, artifacts->kind, EVERY_MS);
}

static bool is_unused(const struct artifact *artifact, int64_t now)
{
    return artifact->state == ARTIFACT_OFFERED && artifact->offered_at + UNUSED_MS <= now;
}

/* Counts one environment only. */
static bool is_own(const void *owner, uint32_t env)
{
    return *(const uint32_t *)owner == env;
}

typedef bool counts_fn(const void *owner, uint32_t env);

/* Returns true if one more upload may be opened among those that count. Removes an unused
 * offer if necessary. */
static bool has_room(struct artifacts *artifacts, counts_fn *counts, const void *owner,
                     unsigned most)
{
    int64_t now = loop_wall_ms(artifacts->loop);
    struct artifact *unused = NULL;
    unsigned open = 0;
    list_each (link, &artifacts->all) {
        struct artifact *artifact = container_of(link, struct artifact, link);
        if (!counts(owner, artifact->env))
            continue;
        open++;
        if (!unused && is_unused(artifact, now))
            unused = artifact;
    }
    if (open < most)
        return true;
    if (unused)
        artifact_remove(artifacts, unused);
    return unused;
}

static enum err check_room(struct artifacts *artifacts, uint32_t env,
                           const struct artifact_sharers *sharers, struct failure *why)
{
    bool has_own = has_room(artifacts, is_own, &env, ARTIFACTS_OPEN_MAX);
    if (has_own && has_room(artifacts, sharers->of_branches, sharers->owner,
                            ARTIFACTS_OPEN_BRANCHES_MAX))
        return OK;
    return explain(why, ERR_BUSY,
                   "The %s %d open uploads; wait until one is deployed or expires",
                   has_own ? "project's preview branches have" : "environment has",
                   has_own ? ARTIFACTS_OPEN_BRANCHES_MAX : ARTIFACTS_OPEN_MAX);
}

enum err artifact_offer(struct artifacts *artifacts, uint32_t env,
                        const struct artifact_sharers *sharers, int64_t length,
                        struct artifact **artifact, struct failure *why)
{
    char random[ARTIFACT_RANDOM_LEN];
    remove_expired(artifacts);
    enum err err = check_room(artifacts, env, sharers, why);
    if (err)
        return err;
    struct artifact *made = mem_new(struct artifact);
    text_random(random, sizeof(random), alphabet);
    set_key(made, (struct slice){ random, sizeof(random) });
    made->env = env;
    made->length = length;
    made->offered_at = loop_wall_ms(artifacts->loop);
    made->expires_at = (made->offered_at + ARTIFACT_TTL_MS) / 1000 * 1000;
    list_append(&artifacts->all, &made->link);
    *artifact = made;
    return OK;
}

size_t artifacts_bytes(const struct artifacts *artifacts,
                       const struct artifact_sharers *sharers)
{
    size_t bytes = 0;
    list_each (link, &artifacts->all) {
        const struct artifact *artifact = container_of(link, struct artifact, link);
        bytes += sharers->of_project(sharers->owner, artifact->env)
                     ? (size_t)artifact->length
                     : 0;
    }
    return bytes;
}

uint64_t artifacts_reserved(const struct artifacts *artifacts)
{
    uint64_t bytes = 0;
    list_each (link, &artifacts->all) {
        const struct artifact *artifact = container_of(link, struct artifact, link);
        if (artifact->state == ARTIFACT_OFFERED || artifact->state == ARTIFACT_WRITING)
            bytes += (uint64_t)(artifact->length - artifact->written);
    }
    return bytes;
}

const char *artifacts_folder(const struct artifacts *artifacts)
{
    return artifacts->folder;
}

struct artifact *artifacts_find(struct artifacts *artifacts, uint32_t env, struct slice key)
{
    int64_t now = loop_wall_ms(artifacts->loop);
    list_each (link, &artifacts->all) {
        struct artifact *artifact = container_of(link, struct artifact, link);
        if (artifact->env == env && artifact->expires_at > now &&
            slice_is(key, artifact->key))
            return artifact;
    }
    return NULL;
}
