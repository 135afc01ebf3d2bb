/* mirror.h - a client of runs.v1 that keeps every rule and trusts nothing
 * (runcast/protocol.h, "What a client does").
 *
 * It mirrors the runs of its subscriptions from the frames it receives. After each row it
 * compares the run with the ledger's version of that number, and at each sync all runs of
 * all live subscriptions with the ledger's state at that seq. */
#pragma once

#include "base/buf.h"
#include "core/model/filter.h"
#include "core/wire/view.h"
#include "tests/support/fakes/ledger.h"

enum { MIRROR_SUBS = 5 };

struct mirror_sub {
    int64_t id; /* 0: free */
    struct filter filter;
    bool synced;   /* was complete, in this connection or an earlier one */
    bool live;     /* in this connection */
    bool leaving;  /* unsubscribed, but "end" has not arrived */
    bool snapshot; /* ok named this mode; its runs are being marked */
};

struct mirror_row {
    char id[ID_MAX - 8];
    uint32_t version;
    struct bytes *fields[FIELD_COUNT]; /* JSON texts; NULL: unset */
    unsigned seen;                     /* in the snapshots of these subs, one bit each */
    bool by_rows;                      /* this version arrived while a sub caught up */
};

struct mirror {
    const struct ledger *ledger;
    struct view view;
    struct table rows; /* of struct mirror_row, by id */
    struct mirror_sub subs[MIRROR_SUBS];
    int64_t last_id;
    bool has_position;
    uint64_t seq, base; /* the position */
    unsigned syncs, applied;
};

void mirror_init(struct mirror *mirror, const struct ledger *ledger,
                 const struct view *view);
void mirror_finish(struct mirror *mirror);

/* Adds a subscription, which the caller must request. Takes ownership of filter. Returns
 * NULL if there are already MIRROR_SUBS. */
struct mirror_sub *mirror_add(struct mirror *mirror, struct filter *filter);

/* connected: "end" will arrive for it. */
void mirror_leave(struct mirror *mirror, struct mirror_sub *sub, bool connected);

/* The connection was closed: no more of its frames will arrive. */
void mirror_cut(struct mirror *mirror);

/* Returns true if this subscription can resume from the position. */
bool mirror_may_resume(const struct mirror *mirror, const struct mirror_sub *sub);

/* One message of the server, in the view's encoding. */
void mirror_receive(struct mirror *mirror, struct slice message);

/* The message as JSON text, whatever the encoding. */
void mirror_to_json(const struct view *view, struct slice message, struct buf *json);

/* Returns true if every subscription is live. mirror_check_end asserts that its content
 * equals the ledger's at the end. */
bool mirror_complete(const struct mirror *mirror);
void mirror_check_end(struct mirror *mirror);
