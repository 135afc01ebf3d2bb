/* secret_filter.h - redacts secrets in a text that arrives in pieces.
 *
 *   add, add … ─► prepare, in time slices ─► texts: each piece is read once
 *
 * Secrets shorter than 8 bytes are not replaced: they would tear holes into every text.
 * Each secret is also found in the form that it has inside a JSON string. The cost of a
 * text is linear in its length, whatever the secrets are and however many: each byte looks at
 * SECRET_LOOKS nodes of a trie at most. A piece of a build's log has 64 KiB at most, and the
 * secrets of a build have a few hundred KiB (accounts/variables.h), so no turn of the loop is
 * long. */
#pragma once

#include "base/buf.h"
#include "base/loop.h"

enum {
    SECRET_LEAST = 8,  /* bytes */
    SECRET_LOOKS = 18, /* for each byte of a text, and of a pattern, on average at most */
};

struct secret_pattern;
struct secret_node;

/* A zeroed one has no secrets and may be used without being prepared. */
struct secret_filter {
    struct secret_pattern *patterns; /* until it is prepared, which sorts them */
    size_t count;
    size_t bytes;              /* of all patterns together */
    size_t longest;            /* bytes of the longest pattern; 0: there are no secrets */
    struct secret_node *nodes; /* the trie, level by level */
    uint32_t node_count;
    uint64_t looks;                   /* at nodes, while it was prepared */
    uint32_t first[256];              /* children of the root, by byte; 0: none */
    struct secret_building *building; /* while the trie is incomplete */
};

/* Copies the value; a short one is ignored. */
void secret_filter_add(struct secret_filter *filter, struct slice value);

/* Adds the values of a JSON object of strings; the object is valid JSON. */
void secret_filter_add_all(struct secret_filter *filter, struct slice object);

/* Does one time slice of the work that makes the filter usable; add nothing afterwards.
 * Returns true once it is usable. The work is linear in the bytes of the secrets. */
bool secret_filter_prepare(struct secret_filter *filter, struct timeslice *timeslice);

/* Appends text with "<redacted>" in place of each secret. The filter is prepared. */
void secret_filter_apply(const struct secret_filter *filter, struct slice text,
                         struct buf *out);

/* Wipes and frees the secrets. */
void secret_filter_finish(struct secret_filter *filter);

/* A text that arrives in pieces; zeroed at first. */
struct secret_scan {
    uint32_t node;             /* where in the trie the text ends */
    uint64_t read;             /* bytes of the text so far */
    uint64_t looks;            /* at nodes of the trie so far */
    struct buf held;           /* its end, which may be the beginning of a secret */
    struct secret_hole *holes; /* secrets in what is held, ascending and disjoint */
    size_t hole_count;
};

/* Reads a piece, and appends to out as much of the text as later pieces cannot change. */
void secret_scan_add(struct secret_scan *scan, const struct secret_filter *filter,
                     struct slice piece, struct buf *out);

/* Ends a complete text: appends the part held back, and zeroes the scan. */
void secret_scan_end(struct secret_scan *scan, struct buf *out);
