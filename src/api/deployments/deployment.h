/* deployment.h - one deployment: a bundle that becomes a version, or does not.
 *
 *   PENDING ─► INSTALLING ─► BUILDING ─► DEPLOYING ─► DEPLOYED
 *     ▲  │          │            │            │
 *     │  ├──────────┴────────────┴────────────┴─► FAILED, CANCELED, TIMED_OUT
 *     │  │          │            │            │
 *     └──┼──────────┴────────────┴────────────┘   once more, if its build was cut off
 *
 * In PENDING it waits for a builder. Then its packages are installed, and its commands and
 * its index run. In DEPLOYING it has its worker (api/registration/registering.h). The last four
 * are final. The store keeps each deployment as one document of DOC_DEPLOYMENT; every
 * change replaces the whole document. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "core/fleet/worker_versions.h"

enum deployment_status {
    DEPLOYMENT_PENDING,
    DEPLOYMENT_INSTALLING,
    DEPLOYMENT_BUILDING,
    DEPLOYMENT_DEPLOYING,
    DEPLOYMENT_DEPLOYED,
    DEPLOYMENT_FAILED,
    DEPLOYMENT_CANCELED,
    DEPLOYMENT_TIMED_OUT,
    DEPLOYMENT_STATUSES
};

enum {
    DEPLOYMENT_BUILDS_MAX = 2, /* a second one begins only if the first was cut off */
    SHORT_CODE_LEN = 8,
    MACHINE_TEXT = 16, /* bytes of an architecture or a libc, with a zero */
    ERROR_NAME_MAX = 128,
    ERROR_MESSAGE_MAX = 4096,
    ERROR_STACK_MAX = 64 * 1024,
    ERROR_STDERR_MAX = 4096, /* the last bytes are kept */
};

/* Texts are NULL if absent. Times are Unix ms; 0: not yet. */
struct deployment_row {
    enum deployment_status status;
    char id[ID_MAX];
    char short_code[SHORT_CODE_LEN + 1];
    char version[WORKER_VERSION_MAX];
    char content_hash[128]; /* the CLI's, of its bundle */
    struct bytes *external_id;
    struct bytes *runtime;         /* "node-22": what the project requests */
    struct bytes *runtime_version; /* "22.11.0": what indexed it */
    struct bytes *git;             /* a JSON object, unchanged */
    struct bytes *triggered_via;
    bool skip_promotion;
    struct bytes *request; /* request id of all attempts of the call that created it */
    char request_hash[65]; /* SHA-256 of the call's body, in hex */
    int64_t created_at, started_at, deployed_at, ended_at;
    unsigned builds;     /* how many have begun */
    struct bytes *error; /* {"name":…,"message":…,"stack"?:…,"stderr"?:…} */
    struct bytes *canceled_reason;
    int64_t archive_bytes; /* 0: it is no longer kept, nor is the version made of it */
    int64_t version_bytes; /* of the folder made of it */
    char archive_hash[65]; /* SHA-256, in hex */
    char architecture[MACHINE_TEXT], libc[MACHINE_TEXT]; /* of its builder; "": unknown */
    bool has_index;
    bool promotes; /* DEPLOYED, and still to become the current version */
};

/* Returns "PENDING" and so on. */
const char *deployment_status_name(enum deployment_status status);
bool deployment_status_find(struct slice name, enum deployment_status *status);

static inline bool deployment_is_final(enum deployment_status status)
{
    return status >= DEPLOYMENT_DEPLOYED;
}

/* Returns true if a builder has it. */
static inline bool deployment_is_being_built(enum deployment_status status)
{
    return status > DEPLOYMENT_PENDING && status < DEPLOYMENT_DEPLOYED;
}

/* Returns true if one status may follow the other. */
bool deployment_may_become(enum deployment_status from, enum deployment_status to);

/* Copies a row, taking references. */
void deployment_row_copy(struct deployment_row *copy, const struct deployment_row *row);
/* Drops the references. Accepts a zeroed row. */
void deployment_row_finish(struct deployment_row *row);

/* Generates an id and a short code. */
void deployment_row_name(struct deployment_row *row, int64_t now_ms);

/* Ends a deployment that does not become a version; only the reason is kept. Takes
 * ownership of error and reason. */
void deployment_row_end(struct deployment_row *row, enum deployment_status status,
                        struct bytes *error, struct bytes *reason, int64_t now_ms);

/* Why a deployment failed. */
struct deployment_error {
    struct slice name, message, stack, stderr_text; /* absent: none */
};

/* Returns the error as the row stores it: each text is cut at its limit, and of stderr the
 * end is kept. */
struct bytes *deployment_error_write(const struct deployment_error *error);

/* Returns the body of its document; the caller owns the reference. */
struct bytes *deployment_write(const struct deployment_row *row);

/* Reads the body of its document. Returns ERR_INVALID if it is damaged. */
enum err deployment_read(struct slice body, struct deployment_row *row,
                         struct failure *why);
