/* fake_page.c - sorts documents, drops all up to `from`, and cuts the page by limits. */
#include "tests/support/fakes/fake_page.h"

#include <stdlib.h>
#include <string.h>

static int compare_names(struct slice a, struct slice b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int upwards(const void *a, const void *b)
{
    const struct document *x = a, *y = b;
    if (x->env != y->env)
        return x->env < y->env ? -1 : 1;
    return compare_names(bytes_slice(x->name), bytes_slice(y->name));
}

static int downwards(const void *a, const void *b)
{
    return upwards(b, a);
}

static bool is_behind(const struct store_scan *req, const struct document *document)
{
    int order = compare_names(bytes_slice(document->name), slice_of(req->from));
    return !req->from[0] || (req->downwards ? order < 0 : order > 0);
}

static bool is_full(const struct store_scan *req, size_t count, size_t bytes)
{
    return count == req->limit || (req->byte_limit && bytes > req->byte_limit);
}

void fake_page_cut(struct store_scan *req)
{
    size_t kept = 0, bytes = 0;
    req->more = false;
    qsort(req->documents, req->count, sizeof(*req->documents),
          req->downwards ? downwards : upwards);
    if (!req->limit)
        return;
    for (size_t i = 0; i < req->count; i++) {
        struct document *document = &req->documents[i];
        bool wanted = is_behind(req, document);
        req->more |= wanted && is_full(req, kept, bytes);
        if (!wanted || req->more) {
            document_finish(document);
            continue;
        }
        bytes += document->body->len;
        req->documents[kept++] = *document;
    }
    req->count = kept;
}
