/* caller_places.h - how many calls of each caller may be in progress at the leader at once.
 *
 *   call ─► its project or its user ─► their organization ─┐
 *       └─► the address of a stranger ─► all strangers ────┴─► a place, or refused
 *
 * An organization may have as many places as are still free. So one that takes all it gets has
 * half of them, two have a third each, and so on: there is always a share left for the next
 * one. Strangers together get as many as half of those that are free, up to a limit. A quarter
 * of that is left to calls other than sockets, which last. */
#pragma once

#include "api/request/call.h"
#include "base/list.h"
#include "base/table.h"

enum {
    CALLER_PLACES = 4000, /* each may need a connection to the leader (forwarder.c) */
    CALLER_PLACES_OF_PROJECT = 1000, /* the limits */
    CALLER_PLACES_OF_USER = 250,
    CALLER_PLACES_OF_STRANGERS = 1000,
    CALLER_PLACES_OF_ADDRESS = 250, /* of a stranger */
};

struct place_owner;

/* Both tables have only owners with a place, by place_owner::key. */
struct caller_places {
    size_t taken;
    struct table tenants; /* organizations, and all strangers as one */
    struct table callers; /* projects, users, and addresses of strangers */
    /* Calls of strangers whose requests are incomplete. The one that has been silent for the
     * longest time is first. */
    struct list senders;
    /* Ends this call: strangers have all of their places, and another call of theirs arrives. */
    void (*end_sender)(struct list *sender);
};

void caller_places_init(struct caller_places *places, void (*end_sender)(struct list *));
/* Requires that no place is taken. */
void caller_places_finish(struct caller_places *places);

/* Takes a place. organization, and id of a project or a user in it: their ids. Returns NULL if
 * one of them has too many. */
struct place_owner *caller_places_take(struct caller_places *places,
                                       struct slice organization, struct slice id,
                                       size_t limit);

/* The same for a caller without a known credential. address: absent if it is that of a proxy
 * that hides its clients. lasts: it opens a socket. */
struct place_owner *caller_places_take_stranger(struct caller_places *places,
                                                struct slice address, bool lasts);

/* The same for the caller of a call, as far as it is known here; the leader judges it. Sets
 * api_call::identity if it can. */
struct place_owner *caller_places_take_for(struct caller_places *places,
                                           struct api_call *call);

/* Returns false for a stranger. */
bool place_owner_is_known(const struct place_owner *owner);

/* Notes that bytes of a call have arrived, if its owner is a stranger. sender: a link of the
 * call, to be removed when its request is complete, or when it ends. */
void caller_places_note_sender(struct caller_places *places,
                               const struct place_owner *owner, struct list *sender);

void caller_places_release(struct caller_places *places, struct place_owner *owner);
