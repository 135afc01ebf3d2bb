/* caller_places.c - counts the places of each owner that has any. */
#include "api/router/caller_places.h"

#include <assert.h>
#include <stdlib.h>

#include "accounts/lasting.h"
#include "api/browser/cookie.h"
#include "api/request/parts.h"
#include "base/mem.h"

struct place_owner {
    char *key; /* the id of a project or a user, or an address; "": hidden strangers */
    size_t count;
    bool is_stranger;
};

static struct slice key_of(const void *value)
{
    return slice_of(((const struct place_owner *)value)->key);
}

void caller_places_init(struct caller_places *places)
{
    *places = (struct caller_places){ 0 };
    table_init(&places->owners, key_of);
}

void caller_places_finish(struct caller_places *places)
{
    assert(!places->taken);
    table_finish(&places->owners);
}

static struct place_owner *find_or_add(struct caller_places *places, struct slice key)
{
    struct place_owner *owner = table_find(&places->owners, key);
    if (owner)
        return owner;
    owner = mem_new(struct place_owner);
    owner->key = mem_text(key);
    table_insert(&places->owners, owner);
    return owner;
}

static size_t count_of(const struct caller_places *places, struct slice key)
{
    const struct place_owner *owner = table_find(&places->owners, key);
    return owner ? owner->count : 0;
}

struct place_owner *caller_places_take(struct caller_places *places, struct slice id,
                                       size_t limit)
{
    size_t free = CALLER_PLACES - places->taken, count = count_of(places, id);
    if (count >= limit || count >= free)
        return NULL;
    struct place_owner *owner = find_or_add(places, id);
    owner->count++;
    places->taken++;
    return owner;
}

struct place_owner *caller_places_take_stranger(struct caller_places *places,
                                                struct slice address)
{
    size_t free = CALLER_PLACES - places->taken;
    size_t limit = address.len ? CALLER_PLACES_OF_ADDRESS : CALLER_PLACES_OF_STRANGERS;
    if (places->strangers >= CALLER_PLACES_OF_STRANGERS || places->strangers >= free / 2)
        return NULL;
    struct place_owner *owner = caller_places_take(places, address, limit);
    if (!owner)
        return NULL;
    owner->is_stranger = true;
    places->strangers++;
    return owner;
}

bool place_owner_is_known(const struct place_owner *owner)
{
    return !owner->is_stranger;
}

void caller_places_release(struct caller_places *places, struct place_owner *owner)
{
    places->taken--;
    places->strangers -= owner->is_stranger;
    if (--owner->count)
        return;
    table_remove(&places->owners, key_of(owner));
    free(owner->key);
    free(owner);
}

/* ---- callers ---- */

/* Finds the user of a lasting sign-in, whose cookie is the only credential of one call. */
static const struct user *find_signed_in(const struct api_call *call, int64_t now_ms)
{
    struct slice code;
    for (size_t i = 0; i < COOKIES_MAX && (code = cookie_read(call, i)).ptr; i++) {
        struct slice id = lasting_id_of(code);
        const struct secret *secret =
            id.ptr ? lasting_find(call->api->accounts, id, now_ms) : NULL;
        if (secret && !secret->lasting->has_key &&
            lasting_judge(secret, code, now_ms) != LASTING_OLD)
            return secret->user;
    }
    return NULL;
}

static const struct project *project_of(const struct identity *identity)
{
    if (identity->account)
        return identity->account->project;
    return identity->secret ? identity->secret->project : NULL;
}

/* Sets the project or the user of the call, as far as it is known here. */
static void identify(struct api_call *call, const struct project **project,
                     const struct user **user)
{
    struct slice header = http_header(call->x, "authorization");
    int64_t now_ms = loop_wall_ms(engine_loop(call->api->engine));
    struct failure why;
    if (!header.ptr) {
        *user = find_signed_in(call, now_ms);
    } else if (!auth_identify(call->api->auth, header, call->x->peer, now_ms,
                              &call->identity, &why)) {
        *project = project_of(call->identity);
        *user = call->identity->user;
    }
}

struct place_owner *caller_places_take_for(struct caller_places *places,
                                           struct api_call *call)
{
    struct exchange *x = call->x;
    const struct project *project = NULL;
    const struct user *user = NULL;
    identify(call, &project, &user);
    if (!project && !user)
        return caller_places_take_stranger(places, slice_of(x->hidden ? "" : x->peer));
    return project
               ? caller_places_take(places, slice_of(project->id), CALLER_PLACES_OF_PROJECT)
               : caller_places_take(places, slice_of(user->id), CALLER_PLACES_OF_USER);
}
