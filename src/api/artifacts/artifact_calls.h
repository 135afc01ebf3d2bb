/* artifact_calls.h - the upload of a bundle, behind its signed address. */
#pragma once

#include "api/request/route.h"

/* params are the environment's id and the key. */
enum err artifact_upload_piece(struct api_call *call, struct slice piece);
route_fn artifact_upload;
