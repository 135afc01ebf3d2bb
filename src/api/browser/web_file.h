/* web_file.h - serves browsers the files that the build embeds into the program. */
#pragma once

#include "api/request/call.h"

struct web_file {
    struct slice text, packed; /* as written; gzipped */
    const char *tag;           /* of the content, for the ETag */
    const char *type;          /* content-type */
    const char *cache;         /* cache-control */
};

/* Replies with the file, or 304 if the client has it (If-None-Match, RFC 9110 13.1.2). */
enum err web_file_show(struct api_call *call, const struct web_file *file);
