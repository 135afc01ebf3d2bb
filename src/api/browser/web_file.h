/* web_file.h - files that browsers ask for, which the build has put into the program. */
#pragma once

#include "api/request/call.h"

struct web_file {
    struct slice text, packed; /* as it is written; by gzip */
    const char *tag;           /* of its content */
    const char *type;          /* its content-type */
    const char *cache;         /* its cache-control */
};

/* Replies with the file, or with 304 to who has it (If-None-Match, RFC 9110 13.1.2). */
enum err web_file_show(struct api_call *call, const struct web_file *file);
