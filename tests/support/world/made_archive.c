/* made_archive.c - packs archives and has the reader check them. */
#include "tests/support/world/made_archive.h"

#include <stdio.h>

#include "tests/support/world/unit.h"

const struct bundle_limits made_limits = { .files_max = 10,
                                           .unpacked_max = 5000,
                                           .ratio_max = 200 };

struct bundle *made_open(struct made_archive *made, const struct bundle_limits *limits)
{
    tar_end(&made->tar);
    buf_clear(&made->packed);
    tar_gzip(buf_slice(&made->tar), &made->packed);
    return tar_open(buf_slice(&made->packed), limits);
}

void made_finish(struct made_archive *made)
{
    buf_finish(&made->tar);
    buf_finish(&made->packed);
    *made = (struct made_archive){ 0 };
}

void made_assert_refused(struct made_archive *made, enum err code, const char *reason)
{
    struct failure why = { 0 };
    struct bundle *bundle = made_open(made, &made_limits);
    enum err err = bundle_check(bundle, NULL, &why);
    if (err != code || strcmp(why.text, reason) != 0)
        fail_msg("%d '%s' instead of %d '%s'", err, why.text, code, reason);
    bundle_close(bundle);
    made_finish(made);
}

struct bundle_content made_assert_fine(struct made_archive *made)
{
    struct failure why = { 0 };
    struct bundle_content content = { 0 };
    struct bundle *bundle = made_open(made, &made_limits);
    if (bundle_check(bundle, &content, &why))
        fail_msg("%s", why.text);
    bundle_close(bundle);
    made_finish(made);
    return content;
}

enum err made_check_bytes(struct slice bytes, struct failure *why)
{
    struct bundle *bundle = tar_open(bytes, &made_limits);
    enum err err = bundle_check(bundle, NULL, why);
    bundle_close(bundle);
    return err;
}
