/* deployment.h - one deployment: a bundle that becomes a version, or does not.
 *
 *   PENDING ─► INSTALLING ─► BUILDING ─► DEPLOYING ─► DEPLOYED
 *     ▲  │          │            │            │
 *     │  ├──────────┴────────────┴────────────┴─► FAILED, CANCELED, TIMED_OUT
 *     │  │          │            │            │
 *     └──┼──────────┴────────────┴────────────┘   once more, if its build was cut off
 *
 * PENDING waits for a builder; then its packages are installed, its commands and its index run;
 * DEPLOYING has its worker (api/workers/registering.h). The last four are final and never
 * left. The store keeps each deployment as one document of DOC_DEPLOYMENT; every change replaces the
 * whole document. */
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
    DEPLOYMENT_BUILDS_MAX = 2, /* begun; the second one because the first was cut off */
    SHORT_CODE_LEN = 8,
    MACHINE_TEXT = 16, /* of an architecture or a libc, with a zero */
    ERROR_NAME_MAX = 128,
    ERROR_MESSAGE_MAX = 4096,
    ERROR_STACK_MAX = 64 * 1024,
    ERROR_STDERR_MAX = 4096, /* its end */
};

/* Texts of bytes are NULL when there are none. Times are Unix ms, 0: not yet. */
struct deployment_row {
    enum deployment_status status;
    char id[ID_MAX];
    char short_code[SHORT_CODE_LEN + 1];
    char version[WORKER_VERSION_MAX];
    char content_hash[128]; /* the CLI's, of what it has bundled */
    struct bytes *external_id;
    struct bytes *runtime;         /* "node-22": what the project asks for */
    struct bytes *runtime_version; /* "22.11.0": what indexed it */
    struct bytes *git;             /* a JSON object, as it came */
    struct bytes *triggered_via;
    bool skip_promotion;
    struct bytes *request; /* the id of all tries of the call that made it */
    char request_hash[65]; /* SHA-256 of the call's body, in hex */
    int64_t created_at, started_at, deployed_at, ended_at;
    unsigned builds;     /* begun */
    struct bytes *error; /* {"name":…,"message":…,"stack"?:…,"stderr"?:…} */
    struct bytes *canceled_reason;
    int64_t
        archive_bytes; /* 0: it is not kept any more, nor anything that was made of it */
    int64_t version_bytes; /* of the folder that was made of it */
    char archive_hash[65]; /* SHA-256, in hex */
    char architecture[MACHINE_TEXT], libc[MACHINE_TEXT]; /* of its builder; "": not known */
    bool has_index;
    bool promotes; /* it is DEPLOYED, and still to be made the current version */
};

/* "PENDING" and so on. */
const char *deployment_status_name(enum deployment_status status);
bool deployment_status_find(struct slice name, enum deployment_status *status);

static inline bool deployment_is_final(enum deployment_status status)
{
    return status >= DEPLOYMENT_DEPLOYED;
}

/* A builder has it. */
static inline bool deployment_is_being_built(enum deployment_status status)
{
    return status > DEPLOYMENT_PENDING && status < DEPLOYMENT_DEPLOYED;
}

/* Whether one status may follow the other. */
bool deployment_may_become(enum deployment_status from, enum deployment_status to);

/* With references of its own. */
void deployment_row_copy(struct deployment_row *copy, const struct deployment_row *row);
/* A zeroed one is fine. */
void deployment_row_finish(struct deployment_row *row);

/* Draws id and short code. */
void deployment_row_name(struct deployment_row *row, int64_t now_ms);

/* It ends badly: nothing of it is kept but why. Takes over error and reason. */
void deployment_row_end(struct deployment_row *row, enum deployment_status status,
                        struct bytes *error, struct bytes *reason, int64_t now_ms);

/* What a deployment failed of. */
struct deployment_error {
    struct slice name, message, stack, stderr_text; /* absent: none */
};

/* As the row keeps it: each cut at its limit, of stderr the end is kept. */
struct bytes *deployment_error_write(const struct deployment_error *error);

/* The body of its document; the caller's reference. */
struct bytes *deployment_write(const struct deployment_row *row);

/* ERR_INVALID: the document is damaged. */
enum err deployment_read(struct slice body, struct deployment_row *row,
                         struct failure *why);
