/* credentials.h - handlers that create, show, rotate and revoke keys and tokens. */
#pragma once

#include "api/request/route.h"

/* key_changes.c */
route_fn key_create, key_reveal, key_rotate, key_revoke;

/* token_changes.c */
route_fn token_create, token_revoke;
