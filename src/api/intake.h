/* intake.h - a body that is validated while it comes.
 *
 *   on_body: intake_take, for each piece ─► handle: intake_end gives the whole object
 *
 * What is long is read once in small pieces, so no turn has to validate it whole. The
 * collected text lives until intake_free, also behind the reply. */
#pragma once

#include "api/api.h"

struct intake;

/* For route.on_body. */
enum err intake_take(struct api_call *call, struct slice piece);

/* The body is complete: a JSON object that scan.h may read. Takes the intake out of the
 * call; the caller's to intake_free. ERR_INVALID with the text for the client: nothing is
 * left to free. */
enum err intake_end(struct api_call *call, struct intake **intake, struct slice *object);

/* NULL is fine. */
void intake_free(struct intake *intake);

/* For route.on_body of what nobody reads. */
enum err intake_drop(struct api_call *call, struct slice piece);
