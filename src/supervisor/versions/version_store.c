/* version_store.c - loads each version once, and fetches missing ones one at a time. */
#include "supervisor/versions/version_store.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "supervisor/versions/host.h"
#include "supervisor/versions/version_job.h"

enum {
    FILE_MAX = 16 << 20,
    AGAIN_MS = 30 * 1000, /* pause after a version could not be fetched */
    PAUSE_MS = 1000,
    TIMEOUT_MS = 45 * 1000,  /* below the shortest usual lease */
    MAKE_MS = 8 * 60 * 1000, /* default time limit of a build */
    ARCHIVE_BYTES = 1 << 30, /* the gateway has already checked the size */
};

/* A version that is not on this machine. After a failure it stays listed for a while. */
struct missing_version {
    struct run_message message; /* of the first run that needs it; text is NULL */
    struct list requests;       // version_request::link
    bool failed;
    int64_t again_ms; /* if failed: when it may be retried; monotonic */
    struct failure why;
    struct list link; // version_store::missing
};

struct version_store {
    struct loop *loop;
    char *path, *programs;
    struct table versions;  /* struct ready_version, by id */
    struct version_job job; /* initialized by version_store_use; shared is NULL before */
    struct missing_version *fetched; /* what the job fetches; NULL: none */
    int64_t until_ms;                /* until then failed requests are retried; monotonic */
    bool stopped;
    struct list missing; // missing_version::link; in the order in which they came
};

static struct slice version_key(const void *value)
{
    return slice_of(((const struct ready_version *)value)->id);
}

struct version_store *version_store_create(struct loop *loop, const char *path,
                                           const char *programs)
{
    struct version_store *store = mem_new(struct version_store);
    store->loop = loop;
    store->path = mem_text(slice_of(path));
    store->programs = mem_text(slice_of(programs));
    table_init(&store->versions, version_key);
    list_init(&store->missing);
    return store;
}

static void version_free(struct ready_version *version)
{
    free(version->directory);
    free(version->entry);
    free(version->program);
    free(version->content_hash);
    free(version);
}

void version_store_destroy(struct version_store *store)
{
    size_t at = 0;
    if (!store)
        return;
    for (struct ready_version *version; (version = table_next(&store->versions, &at));)
        version_free(version);
    table_finish(&store->versions);
    while (!list_empty(&store->missing))
        free(container_of(list_take(&store->missing), struct missing_version, link));
    free(store->path);
    free(store->programs);
    free(store);
}

/* Reads a JSON object. Returns ERR_NOT_FOUND if there is no file, or ERR_INVALID. */
static enum err read_object(const char *directory, const char *name, struct buf *out,
                            struct failure *why)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", directory, name);
    buf_add_char(&path, '\0');
    int file = open(path.ptr, O_RDONLY | O_CLOEXEC);
    int reason = errno;
    buf_finish(&path);
    if (file < 0)
        return explain(why, reason == ENOENT ? ERR_NOT_FOUND : ERR_INVALID, "%s: %s", name,
                       strerror(reason));
    ssize_t got = 0;
    do {
        out->len += (size_t)got;
        got = read(file, buf_reserve(out, 65536), 65536);
    } while (got > 0 && out->len < FILE_MAX);
    close(file);
    if (got || !scan_is_json(buf_slice(out)) || scan_type(buf_slice(out)) != SCAN_OBJECT)
        return explain(why, ERR_INVALID, "cannot read %s of this version", name);
    return OK;
}

static enum err take_text(struct slice object, const char *name, char **out,
                          struct failure *why)
{
    struct bytes *text = members_text(object, name);
    bool right = text && text->len && !memchr(text->data, 0, text->len);
    if (right)
        *out = mem_text(bytes_slice(text));
    bytes_unref(text);
    return right ? OK
                 : explain(why, ERR_INVALID, "%s is missing in build.json of this version",
                           name);
}

/* Returns true for an absolute path below the version's folder. */
static bool is_inside(const char *path, const char *directory)
{
    size_t len = strlen(directory);
    return strncmp(path, directory, len) == 0 && path[len] == '/' && !strstr(path, "/../");
}

static enum err read_build(const struct version_store *store, struct ready_version *version,
                           struct failure *why)
{
    struct buf text = { 0 };
    char *runtime = NULL;
    enum err refused = read_object(version->directory, "build.json", &text, why);
    if (refused == ERR_NOT_FOUND)
        explain(why, ERR_NOT_FOUND, "this version was not found on this machine");
    if (!refused)
        refused =
            take_text(buf_slice(&text), "runControllerEntryPoint", &version->entry, why);
    if (!refused && !is_inside(version->entry, version->directory))
        refused =
            explain(why, ERR_INVALID,
                    "build.json of this version names a controller outside of the version");
    if (!refused)
        refused = take_text(buf_slice(&text), "contentHash", &version->content_hash, why);
    if (!refused)
        refused = take_text(buf_slice(&text), "runtime", &runtime, why);
    if (!refused)
        refused = host_program(store->programs, slice_of(runtime), &version->program, why);
    free(runtime);
    buf_finish(&text);
    return refused;
}

static enum err compare(struct slice object, const char *name, const char *here,
                        struct failure *why)
{
    struct bytes *text = members_text(object, name);
    enum err refused = OK;
    if (text && !slice_is(bytes_slice(text), here))
        refused = explain(why, ERR_RULE,
                          "this version was built for %s %.40s, but this machine has %s",
                          name, text->data, here);
    bytes_unref(text);
    return refused;
}

/* Checks runcast.json. Without this file the version was installed by hand. */
static enum err read_origin(const struct ready_version *version,
                            const struct run_message *message, struct failure *why)
{
    struct buf text = { 0 };
    enum err refused = read_object(version->directory, "runcast.json", &text, why);
    struct slice object = buf_slice(&text);
    if (!refused)
        refused = compare(object, "architecture", host_architecture(), why);
    if (!refused)
        refused = compare(object, "libc", host_libc(), why);
    struct bytes *hash = refused ? NULL : members_text(object, "sha256");
    if (hash && message->version_hash[0] &&
        !slice_is(bytes_slice(hash), message->version_hash))
        refused = explain(why, ERR_RULE, "the stored files belong to another version");
    bytes_unref(hash);
    buf_finish(&text);
    return refused == ERR_NOT_FOUND ? OK : refused;
}

static enum err load(struct version_store *store, const struct run_message *message,
                     const struct ready_version **out, struct failure *why)
{
    struct ready_version *version =
        table_find(&store->versions, slice_of(message->deployment));
    struct buf directory = { 0 };
    if (version) {
        *out = version;
        return OK;
    }
    version = mem_new(struct ready_version);
    memcpy(version->id, message->deployment, sizeof(version->id));
    buf_print(&directory, "%s/%s", store->path, message->deployment);
    version->directory = mem_text(buf_slice(&directory));
    buf_finish(&directory);
    enum err refused = read_build(store, version, why);
    if (!refused)
        refused = read_origin(version, message, why);
    if (refused) {
        version_free(version);
        return refused;
    }
    table_insert(&store->versions, version);
    *out = version;
    return OK;
}

/* Also checks that the folder still exists, because it may have been removed. */
static enum err find(struct version_store *store, const struct run_message *message,
                     const struct ready_version **out, struct failure *why)
{
    enum err refused = load(store, message, out, why);
    if (refused || access((*out)->entry, F_OK) == 0)
        return refused;
    return explain(why, ERR_NOT_FOUND, "this version was removed from this machine");
}

static void on_later(struct deferred *deferred)
{
    struct version_request *request = container_of(deferred, struct version_request, later);
    request->done(request, request->status);
}

static void tell(struct version_store *store, struct version_request *request)
{
    request->later = (struct deferred){ .fn = on_later };
    loop_defer(store->loop, &request->later);
}

/* ---- missing versions ---- */

static struct missing_version *find_missing(const struct version_store *store,
                                            const char *id)
{
    list_each (link, &store->missing) {
        struct missing_version *missing = container_of(link, struct missing_version, link);
        if (!strcmp(missing->message.deployment, id))
            return missing;
    }
    return NULL;
}

/* Copies a text, cut if it is too long. */
static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%.*s", (int)size - 1, text);
}

static void begin_fetching(struct version_store *store, struct missing_version *missing)
{
    struct build_job *order = &store->job.order;
    *order = (struct build_job){ .archive_bytes = ARCHIVE_BYTES, .deadline_ms = MAKE_MS };
    copy_text(order->deployment, sizeof(order->deployment), missing->message.deployment);
    copy_text(order->version, sizeof(order->version), missing->message.version);
    copy_text(order->organization, sizeof(order->organization),
              missing->message.organization);
    copy_text(order->archive_hash, sizeof(order->archive_hash),
              missing->message.version_hash);
    store->fetched = missing;
    store->until_ms = loop_now_ms(store->loop) + TIMEOUT_MS;
    log_info("fetching a version", "deployment", order->deployment, "version",
             order->version, NULL);
    version_job_begin(&store->job);
}

static void fetch_next(struct version_store *store)
{
    list_each (link, &store->missing) {
        struct missing_version *missing = container_of(link, struct missing_version, link);
        if (!store->fetched && !store->stopped && !missing->failed)
            begin_fetching(store, missing);
    }
}

static void tell_all(struct version_store *store, struct missing_version *missing)
{
    while (!list_empty(&missing->requests)) {
        struct version_request *request =
            container_of(list_take(&missing->requests), struct version_request, link);
        request->why = missing->why;
        request->status = missing->failed ? ERR_RULE
                                          : find(store, &missing->message,
                                                 &request->version, &request->why);
        tell(store, request);
    }
}

static void on_fetched(void *owner, const struct version_outcome *outcome)
{
    struct version_store *store = owner;
    struct missing_version *missing = store->fetched;
    if (!outcome->ok && store->job.state == VERSION_JOB_MAKING)
        log_warn("cannot prepare a version", "deployment", missing->message.deployment,
                 "reason", outcome->message, "output", log_slice(outcome->errors), NULL);
    missing->failed = !outcome->ok;
    missing->again_ms = loop_now_ms(store->loop) + AGAIN_MS;
    if (missing->failed && !store->stopped)
        explain(&missing->why, ERR_RULE, "%s", outcome->message);
    version_job_finish(&store->job);
    store->fetched = NULL;
    tell_all(store, missing);
    if (!missing->failed) {
        list_remove(&missing->link);
        free(missing);
    }
    fetch_next(store);
}

/* Retries for as long as a lease may last; after that the run is released. */
static int64_t pause_fetch(void *owner)
{
    const struct version_store *store = owner;
    return loop_now_ms(store->loop) < store->until_ms ? PAUSE_MS : -1;
}

static const struct version_source fetched_source = {
    .scratch = "fetch-",
    .is_indexed = true,
    .unwritable = "cannot write this version on this machine",
    .full = "cannot write this version on this machine: the disk is full",
    .away = "this version was not found on this machine, and the gateway that has it does "
            "not respond",
    .gone =
        "this version was not found on this machine, and the gateway no longer keeps it",
    .refused =
        "this version was not found on this machine, and the gateway refuses to send it",
    .pause = pause_fetch,
    .done = on_fetched,
};

static struct missing_version *note_missing(struct version_store *store,
                                            const struct run_message *message)
{
    struct missing_version *missing = mem_new(struct missing_version);
    missing->message = *message;
    missing->message.text = NULL;
    list_init(&missing->requests);
    list_append(&store->missing, &missing->link);
    return missing;
}

/* Returns false if it failed a moment ago; the reason is in the request. */
static bool await(struct version_store *store, const struct run_message *message,
                  struct version_request *request)
{
    struct missing_version *missing = find_missing(store, message->deployment);
    if (missing && missing->failed && missing->again_ms > loop_now_ms(store->loop)) {
        request->why = missing->why;
        return false;
    }
    if (missing && missing->failed) {
        list_remove(&missing->link);
        free(missing);
        missing = NULL;
    }
    if (!missing)
        missing = note_missing(store, message);
    list_append(&missing->requests, &request->link);
    fetch_next(store);
    return true;
}

/* ---- interface ---- */

void version_store_use(struct version_store *store, const struct version_shared *shared)
{
    version_job_init(&store->job, shared, &fetched_source, store);
}

void version_store_provide(struct version_store *store, const struct run_message *message,
                           struct version_request *request)
{
    list_init(&request->link);
    request->status = find(store, message, &request->version, &request->why);
    bool is_missing = request->status == ERR_NOT_FOUND || request->status == ERR_INVALID;
    if (is_missing && store->job.shared && message->version_hash[0] &&
        await(store, message, request))
        return;
    tell(store, request);
}

void version_store_stop(struct version_store *store)
{
    struct failure why = { 0 };
    explain(&why, ERR_DRAINING, "the supervise role is shutting down");
    store->stopped = true;
    list_each (link, &store->missing) {
        struct missing_version *missing = container_of(link, struct missing_version, link);
        missing->why = why;
        missing->failed = true;
        tell_all(store, missing);
    }
    if (store->fetched)
        version_job_cancel(&store->job);
}

bool version_store_is_idle(const struct version_store *store)
{
    return !store->fetched;
}

void version_store_forget(struct version_request *request)
{
    list_remove(&request->link);
    loop_cancel_deferred(&request->later);
}
