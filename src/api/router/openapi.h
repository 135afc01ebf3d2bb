/* openapi.h - /openapi.json, generated from the rows of all routes. */
#pragma once

#include "base/bytes.h"

struct area;

/* Returns the document; the caller owns the reference. */
struct bytes *openapi_write(const struct area *const *all, size_t count);
