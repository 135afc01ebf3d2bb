/* image.c - names of images that are none. */
#include "api/workers/image.h"

#if defined(__aarch64__)
const char image_platform[] = "linux/arm64";
#elif defined(__x86_64__)
const char image_platform[] = "linux/amd64";
#else
const char image_platform[] = "linux/unknown";
#endif

void image_add_name(struct buf *out, const struct account *account, struct slice version)
{
    buf_print(out, "runcast/%s:%.*s", account->project->ref, SLICE_ARG(version));
}
