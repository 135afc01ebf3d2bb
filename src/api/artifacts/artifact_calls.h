/* artifact_calls.h - handlers of a bundle's signed upload URL. */
#pragma once

#include "api/request/route.h"

/* The params are the environment's id and the key of the bundle. */
enum err artifact_upload_piece(struct api_call *call, struct slice piece);
route_fn artifact_upload;
