/* replica_parts.h - what the files of the replica share (drawn in replica.c). */
#pragma once

#include "core/replication/replica.h"

/* ---- replica.c ---- */

/* Creates it if needed. */
struct followed *replica_followed_of(struct replica *replica, uint32_t number);

/* Returns NULL if the leader did not name the environment. */
struct followed *replica_find(const struct replica *replica, uint32_t number);

/* Ends the connection. */
void replica_stop(struct replica *replica, const char *why);

/* ---- replica_changes.c ---- */

/* Applies a frame of an environment or of the accounts. Takes ownership of what it needs of it. Returns
 * false if it must be applied again, later. */
bool replica_apply_change(struct replica *replica, struct repl_frame *frame);

/* The stream is at seq of the environment. */
void replica_advance(struct replica *replica, struct followed *followed, uint64_t seq);

/* Memory has, or is given, a run that the leader may have created. */
void replica_note_newest(struct replica *replica, const struct run *run);

void replica_report_applied(const struct replica *replica, struct environment *env);
void replica_report_floor(const struct replica *replica, struct followed *followed);

/* The leader does not have the environment any more: its later changes do not arrive here. */
void replica_leave(struct replica *replica, struct followed *followed);

void replica_forget_before(struct followed *followed);

/* ---- replica_held.c ---- */

/* Returns true if the frame has to wait while those of other environments are applied. */
bool replica_must_hold(const struct replica *replica, const struct repl_frame *frame);

/* Takes ownership of the content of such a frame, of that many bytes. */
void replica_hold(struct replica *replica, struct repl_frame *frame, size_t bytes);

/* The environment has come into memory at the leader. Returns false if it had not left, or has left
 * here, too. Otherwise its drop is held: forgets that, and what had arrived before it. Memory stays,
 * and is read again from the database. */
bool replica_retract_drop(struct replica *replica, const struct repl_position *position);

/* Applies held frames in time slices. Returns true if more may be applied in the next one. */
bool replica_apply_held(struct replica *replica);

/* Brings the environment to the state of the database, while others are followed. Its frames are
 * held meanwhile; none is now. */
void replica_begin_alone(struct replica *replica, struct followed *followed);

/* Memory of the environment is at item.target, which the stream has not reached yet. */
void replica_wait_alone(struct replica *replica, struct followed *followed);

/* It was read: memory is at item.target, which the stream may not have reached yet. */
void replica_land_alone(struct replica *replica, struct followed *followed);

/* The stream is at item.target of such an environment. */
void replica_reach_alone(struct replica *replica, struct followed *followed);

/* Begins with environments that lack changes, a while after they were given up. Ends the
 * connection if the stream does not reach one that was read. */
void replica_look_alone(struct replica *replica);

/* The environment leaves memory, although it may lack changes. */
void replica_forget_alone(struct replica *replica, struct followed *followed);

/* The connection has ended. */
void replica_forget_held(struct replica *replica);

/* left_out_options */
bool replica_needs_packets(void *owner, const struct repl_run *change);
void replica_note_filled(void *owner, const struct repl_run *change);
void replica_note_removed(void *owner, const struct repl_run *change);
