/* bundle_pass.h - one reading of an archive, from its beginning, by whoever wants its files.
 *
 *   visitor:  folder …  file ─► data … ─► end …
 *
 * What the visitor gets was judged: the name is plain, and no limit was crossed. */
#pragma once

#include <stdatomic.h>

#include "os/archive/bundle.h"

struct bundle {
    int file;
    struct bundle_limits limits;
    atomic_bool canceled;
};

/* Refusals of its functions end the pass. NULL ones are not asked. */
struct bundle_visitor {
    enum err (*folder)(struct bundle_visitor *visitor, struct slice name,
                       struct failure *why);
    enum err (*file)(struct bundle_visitor *visitor, struct slice name, bool executable,
                     struct failure *why);
    enum err (*data)(struct bundle_visitor *visitor, struct slice data,
                     struct failure *why);
    enum err (*end)(struct bundle_visitor *visitor, struct failure *why);
    bool done; /* the rest is of no interest: the pass ends well */
};

/* content may be NULL. */
enum err bundle_pass(struct bundle *bundle, struct bundle_visitor *visitor,
                     struct bundle_content *content, struct failure *why);
