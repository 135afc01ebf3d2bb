/* frame_codec.h - frames of replication as bytes, and back.
 *
 * A frame is a msgpack array: [kind, needs, values …]. A message has one frame or several,
 * one after the other. A run is a map of the numbers of its columns (base/contract/
 * run_columns.h) to their values; values that are not set are left out. So gateways of two
 * releases understand each other:
 *
 *   needs               if the reader does not know …
 *   REPL_NEEDS_NOTHING  the kind, it skips the frame; a column or a value, it ignores that
 *   REPL_NEEDS_KIND     the kind, the connection ends
 *   REPL_NEEDS_ALL      anything in the frame, the connection ends
 *
 * A gateway that has left out a value of a run or a document follows, but must not lead: it
 * could not store that value (repl_frame::has_unknown).
 *
 * Reading checks every length against the bytes that are left before anything of that
 * length is allocated, and takes nothing that a run or a document cannot be. */
#pragma once

#include "base/buf.h"
#include "core/replication/frames.h"

enum repl_needs { REPL_NEEDS_NOTHING, REPL_NEEDS_KIND, REPL_NEEDS_ALL };

/* Bytes of a frame at most. The longest has a run with its payload, output and metadata. */
enum { REPL_FRAME_MAX = 64 << 20 };

/* Appends the frame. */
void repl_write(const struct repl_frame *frame, struct buf *out);

/* Takes the next frame off the front of a message; frames that may be skipped are. Sets the
 * kind to REPL_NONE at the end of the message. The caller finishes the frame.
 *
 * ERR_INVALID: the connection must end; why has the reason. Nothing must be finished. A
 * document of an unknown kind is read as REPL_PASSED. Call run_share_names for a run that
 * is kept. May be called on the loop thread only. */
enum err repl_read(struct slice *message, struct repl_frame *frame, struct failure *why);
