/* envvars.h - environment variables: whose they are, and in which order they are set. */
#pragma once

#include "api/api.h"

struct envvars;

struct envvars *envvars_create(struct loop *loop, struct vault *vault);

/* Every call was answered. */
void envvars_destroy(struct envvars *envvars);

/* The environment that the path names, for the credential of the call (management-api
 * §3.5): a key has its own, a personal token those of the projects its user sees. */
enum err envvars_find(struct api_call *call, struct account **account);

/* The handlers that change something; envvar_write.c. */
enum err envvars_create_one(struct api_call *call);
enum err envvars_upload(struct api_call *call);
enum err envvars_update(struct api_call *call);
enum err envvars_delete(struct api_call *call);
