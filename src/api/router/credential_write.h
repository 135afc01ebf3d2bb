/* credential_write.h - one write that creates or ends a key or token through the API.
 *
 *   handler: reads the request ─► account_writer: decide ─► commit ─► audited ─► reply
 *
 * The caller is checked again when it is the write's turn, because its token may have ended
 * by then. */
#pragma once

#include "accounts/account_writer.h"
#include "accounts/bootstrap.h"
#include "api/request/call.h"

enum { CREDENTIAL_BODY = 4096 };

struct credential_write {
    struct api_call *call;
    struct account *account;          /* of a key; NULL: a token */
    char id[SECRET_ID_LEN + 1];       /* of the one that is created or ended */
    char replaced[SECRET_ID_LEN + 1]; /* of the key that it replaces; "": none */
    char label[ACCOUNT_NAME_MAX + 1];
    int64_t ttl_ms;              /* of the new one; 0: until it is revoked */
    int64_t ends_at;             /* of a new token, Unix ms; 0: until it is revoked */
    int64_t grace_ms;            /* of the replaced one */
    char secret[SECRET_KEY_MAX]; /* of the new one, in clear */
    struct claim claim;          /* for the request id; this struct owns its key */
    struct account_write write;
    void (*reply)(struct credential_write *op);
};

/* Creates the write. It is freed with its call's reply. */
struct credential_write *credential_write_create(struct api_call *call);

/* Logs that the caller was refused, with the id in the path. account: of the key, if it was
 * found; NULL: not found, or a token. Returns refused. */
enum err credential_log_refused(struct api_call *call, const struct account *account,
                                struct slice id, enum err refused);

/* Begins it; reply is called once the changes are committed. */
void credential_write_begin(struct credential_write *op,
                            enum err (*decide)(struct account_write *, struct accounts *,
                                               struct draft *),
                            void (*reply)(struct credential_write *op));

/* Returns ERR_UNAUTHORIZED if the caller has ended since the write began. */
enum err credential_check_caller(struct credential_write *op, int64_t now_ms);

/* Reads a display name into op->label. */
enum err credential_read_label(struct credential_write *op, const json_t *body);

/* Reads a member like "90d" or "0" as a span. A missing one leaves *ms unchanged. */
enum err credential_read_span(struct api_call *call, const json_t *body, const char *member,
                              int64_t *ms);

/* Makes a repeated request take effect only once. kind: what is created. */
void credential_claim(struct credential_write *op, const char *kind, const char *inside);

/* Writes the id under which lists show a secret that is not in memory yet. */
void credential_show_id(const char *secret, char id[SECRET_ID_LEN + 1]);
