/* queue_reserve.h - keeps free slots for an item that others pass over again and again.
 *
 * An item that needs slots of two limits starts only when both have one. Items that need one
 * of them each could take every slot that becomes free:
 *
 *   slots of a:  ── x ─────── x ─────── x ──     each time that a or b has a free slot,
 *   slots of b:  ─────── x ─────── x ───────     the other one has none
 *
 * An item is passed over when a younger one, or one that resumes, takes the last free slot of
 * a limit that it needs, while it is the head of its lane, share, class or group. Its queue and
 * its gates count as limits, and so does each key of a limit. The head of a group, which keeps
 * its turn, is passed over only if it lacks a slot of another limit, too.
 *
 * After RESERVE_PASSES times the item keeps slots: of each limit that it needs, no other item
 * may take the last free slot. As soon as each has one, the item is the next of its audience,
 * whosever turn it is. So it need not wait for any run that begins after it keeps slots: it
 * may run, at the latest, when all those have left that hold slots of its limits at that time.
 *
 * That holds until one of these ends it:
 * - An older item, or one that resumes if this one does not, needs one of the limits, too, and
 *   was passed over as often. At most one item keeps slots of a limit, so two never wait for
 *   slots that the other one keeps.
 * - One of its limits is paused or becomes 0.
 * - It could run, but no caller takes it (queues_free_untaken).
 *
 * A share (or lane) counts for its head. That costs nothing while no slot is the last one, and never visits
 * items that are not heads. Nothing is stored: after a restart the counts begin at 0.
 *
 * Decides only; queue.c moves the heads. Used by queue.c and queue_limits.c. */
#pragma once

#include "core/queues/queue_parts.h"

enum {
    RESERVE_NEEDS_MAX = 1 + SLOT_SET_MAX,
    KEEPER_ROUND = 0, /* of a share for which slots are kept; all others are above it */
};

/* The item, which waits, is about to take its slots. Counts a pass for each head that it
 * passes over. Returns the oldest of those that should keep slots now, or NULL. */
struct subqueue_share *reserve_pass_over(const struct queues *queues,
                                         const struct queue_item *item);

/* The same for an item that has not waited: for one of this subqueue with these needs. */
struct subqueue_share *reserve_pass_over_at_once(const struct queues *queues,
                                                 struct subqueue *subqueue,
                                                 const struct slot_demand *demand);

/* Sets needs to the subqueues and pools of which the items of the share need a slot, its own
 * first. Returns how many. A share with lanes has none. */
uint32_t reserve_needs(const struct subqueue_share *share,
                       struct subqueue *needs[RESERVE_NEEDS_MAX]);

/* Returns true if slots may be kept for the share: each of its limits may give it a slot, and
 * none is kept for an older one. */
bool reserve_may_keep(const struct queues *queues, const struct subqueue_share *share);

/* Returns another share that keeps a slot of one of this one's limits, or NULL. */
struct subqueue_share *reserve_find_other(const struct subqueue_share *share);

/* Requires that no other share keeps a slot of one of its limits. */
void reserve_begin(struct queues *queues, struct subqueue_share *share);

/* Requires that the share keeps slots. */
void reserve_end(struct subqueue_share *share);

/* Returns how many free slots of the queue or limit are kept. */
uint32_t reserve_count(const struct queue *queue);
