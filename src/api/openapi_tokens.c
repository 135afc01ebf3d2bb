/* openapi_tokens.c - the operations of tokens. */
#include "call/operation.h"

/* clang-format off */
const struct operation tokens_operations[] = {
    { HTTP_POST_, "/api/v1/auth/jwt/claims",
      .id = "get_jwt_claims_v1", .summary = "Claims for a token that the client signs",
      .reply = "{sub: string, pub: boolean}" },
    { HTTP_POST_, "/api/v1/auth/public-tokens",
      .id = "create_public_token_v1", .summary = "Sign a public access token",
      .body =
          "{scopes: string[], expirationTime?: string|number, oneTimeUse?: boolean, "
          "realtime?: {skipColumns?: string[], ...}, ...}",
      .reply = "{token: string}" },
    { HTTP_POST_, "/api/v1/auth/jwt",
      .id = "create_jwt_v1", .summary = "Sign a token with claims",
      .body = "{claims?: {scopes?: string[], otu?: boolean, realtime?: {skipColumns?: "
              "string[], ...}, ...}, expirationTime?: string|number, ...}",
      .reply = "{token: string}" },
    { 0 },
};
/* clang-format on */

const struct schema tokens_schemas[] = {
    { 0 },
};
