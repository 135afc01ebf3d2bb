/* singleton_decision.h - what a trigger does about the run that holds its key. */
#pragma once

#include "core/engine/engine.h"

/* Decides the command on trigger::pushes, whose state is `now`: it cancels that run
 * (trigger::replaces), or changes nothing. Refuses with ERR_CONFLICT if another run holds
 * the key by now, and with ERR_RULE if the item descends from the holder. */
enum decision singleton_decide(struct command *command, struct trigger *item,
                               const struct run *now, struct run *next, unsigned *marks);

/* Cancels the run that the item's leader creates, in its change. */
void singleton_cancel_new(const struct trigger *item, int64_t now_ms);
