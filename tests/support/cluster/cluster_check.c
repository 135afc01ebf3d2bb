/* cluster_check.c - what was acknowledged, when, and whether statements agree with it. */
#include "tests/support/cluster/cluster_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/world/sim.h"

void cluster_check_init(struct cluster_check *check)
{
    *check = (struct cluster_check){ 0 };
    check->histories[0] = ledger_create();
}

void cluster_check_finish(struct cluster_check *check)
{
    for (unsigned i = 0; i <= check->history; i++)
        ledger_destroy(check->histories[i]);
    free(check->acks);
}

void cluster_check_begin_history(struct cluster_check *check)
{
    if (++check->history == HISTORIES_MAX)
        violated("more than %d histories", HISTORIES_MAX);
    check->histories[check->history] = ledger_create();
    memset(check->revoked_below, 0, sizeof(check->revoked_below));
}

void cluster_history_name(unsigned history, char epoch[17])
{
    snprintf(epoch, 17, "history%09u", history);
}

unsigned cluster_history_of(const char *epoch)
{
    uint64_t history = 0;
    if (!*epoch)
        return 0;
    text_to_u64(slice_from(slice_of(epoch), sizeof("history") - 1), &history);
    return (unsigned)history;
}

/* ---- positions ---- */

static bool is_before(struct cluster_moment a, struct cluster_moment b)
{
    return a.history < b.history || (a.history == b.history && a.seq < b.seq);
}

struct cluster_moment cluster_check_asked(const struct cluster_check *check, int64_t at)
{
    size_t i = check->ack_count;
    while (i && check->acks[i - 1].at > at)
        i--;
    return i ? check->acks[i - 1].moment : (struct cluster_moment){ 0 };
}

/* Keeps the highest of each: responses may overtake each other. */
void cluster_check_acked(struct cluster_check *check, int64_t now,
                         struct cluster_moment moment)
{
    struct cluster_moment last = cluster_check_asked(check, now);
    if (moment.history < last.history)
        return;
    if (is_before(moment, last))
        moment.seq = last.seq;
    if (moment.term < last.term)
        moment.term = last.term;
    if (check->ack_count == check->ack_capacity) {
        check->ack_capacity = check->ack_capacity ? 2 * check->ack_capacity : 64;
        check->acks = mem_resize(check->acks, check->ack_capacity * sizeof(*check->acks));
    }
    check->acks[check->ack_count++] = (struct cluster_ack){ now, moment };
}

void cluster_check_shown(struct cluster_check *check, const char *by, int64_t now,
                         struct cluster_moment claim, struct cluster_moment asked)
{
    struct cluster_moment newest = cluster_check_asked(check, now);
    check->shown++;
    if (is_before(claim, asked))
        violated("%s: in sync at %u/%llu, below the position %u/%llu that was asked for",
                 by, claim.history, (unsigned long long)claim.seq, asked.history,
                 (unsigned long long)asked.seq);
    if (claim.history <= newest.history && claim.term < newest.term)
        violated("%s: in sync under term %llu, after term %llu has acknowledged", by,
                 (unsigned long long)claim.term, (unsigned long long)newest.term);
}

void cluster_check_sync(struct cluster_check *check, const char *by, int64_t now,
                        struct cluster_moment claim, struct cluster_moment asked)
{
    struct cluster_moment old = cluster_check_asked(check, now - TRUST_MS - 1);
    check->syncs++;
    cluster_check_shown(check, by, now, claim, asked);
    if (is_before(claim, old))
        violated("%s: in sync at %llu, %d ms after %llu was acknowledged", by,
                 (unsigned long long)claim.seq, TRUST_MS, (unsigned long long)old.seq);
}

/* ---- keys ---- */

void cluster_check_accepted(const struct cluster_check *check, int64_t now, unsigned key,
                            uint64_t generation, int64_t begun, bool asked)
{
    int64_t revoked_at = check->revoked_at[key];
    if (generation >= check->revoked_below[key])
        return;
    if (asked && begun >= revoked_at)
        violated("key %u is accepted by a question %lld ms after its revocation", key,
                 (long long)(begun - revoked_at));
    if (now > revoked_at + TRUST_MS)
        violated("key %u is accepted %lld ms after its revocation", key,
                 (long long)(now - revoked_at));
}
