/* bundle_pass.h - one pass over an archive from its beginning, which calls a visitor.
 *
 *   visitor:  folder …  file ─► data … ─► end …
 *
 * Everything that the visitor gets has been checked: the name is plain, and no limit is
 * exceeded. */
#pragma once

#include <stdatomic.h>

#include "os/archive/bundle.h"

struct bundle {
    int file;
    struct bundle_limits limits;
    atomic_bool canceled;
};

/* An error returned by one of its functions ends the pass. Functions may be NULL. */
struct bundle_visitor {
    enum err (*folder)(struct bundle_visitor *visitor, struct slice name,
                       struct failure *why);
    enum err (*file)(struct bundle_visitor *visitor, struct slice name, bool executable,
                     struct failure *why);
    enum err (*data)(struct bundle_visitor *visitor, struct slice data,
                     struct failure *why);
    enum err (*end)(struct bundle_visitor *visitor, struct failure *why);
    bool done; /* nothing more is needed: the pass ends with OK */
};

/* content may be NULL. */
enum err bundle_pass(struct bundle *bundle, struct bundle_visitor *visitor,
                     struct bundle_content *content, struct failure *why);
