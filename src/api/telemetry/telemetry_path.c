/* telemetry_path.c - writes /otel/<environment>/<signature>, which otel.c has routes for. */
#include "api/telemetry/telemetry_path.h"

#include "accounts/auth/signed_url.h"

void telemetry_path_add(struct buf *out, const struct account *account)
{
    char signature[URL_SIGNATURE_LEN + 1];
    url_sign(account, "OTLP", SLICE("telemetry"), url_never_s, signature);
    buf_print(out, "/otel/%s/%s", account->id, signature);
}
