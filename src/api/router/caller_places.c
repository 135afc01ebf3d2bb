/* caller_places.c - counts the places of each owner that has any. */
#include "api/router/caller_places.h"

#include <assert.h>
#include <stdlib.h>

#include "accounts/lasting.h"
#include "api/browser/cookie.h"
#include "api/request/parts.h"
#include "api/request/route.h"
#include "api/router/signed.h"
#include "base/mem.h"

static const char strangers[] = ""; /* the key of all of them, as a tenant */

struct place_owner {
    char *key; /* an id, or an address; "": hidden strangers */
    size_t count;
    struct place_owner *tenant; /* NULL: it is one */
};

static struct slice key_of(const void *value)
{
    return slice_of(((const struct place_owner *)value)->key);
}

void caller_places_init(struct caller_places *places, void (*end_sender)(struct list *))
{
    *places = (struct caller_places){ .end_sender = end_sender };
    list_init(&places->senders);
    table_init(&places->tenants, key_of);
    table_init(&places->callers, key_of);
}

void caller_places_finish(struct caller_places *places)
{
    assert(!places->taken);
    table_finish(&places->tenants);
    table_finish(&places->callers);
}

static size_t count_of(const struct place_owner *owner)
{
    return owner ? owner->count : 0;
}

/* owner: that of the key; NULL: it has no place yet. */
static struct place_owner *take(struct table *table, struct place_owner *owner,
                                struct slice key)
{
    if (!owner) {
        owner = mem_new(struct place_owner);
        owner->key = mem_text(key);
        table_insert(table, owner);
    }
    owner->count++;
    return owner;
}

static void release(struct table *table, struct place_owner *owner)
{
    if (--owner->count)
        return;
    table_remove(table, key_of(owner));
    free(owner->key);
    free(owner);
}

/* An owner stays with its tenant while it has places, even if its organization is removed
 * meanwhile: each place is released where it was taken. */
static struct place_owner *take_place(struct caller_places *places, struct slice tenant,
                                      size_t tenant_limit, struct slice key, size_t limit)
{
    struct place_owner *owner = table_find(&places->callers, key);
    struct place_owner *in = owner ? owner->tenant : table_find(&places->tenants, tenant);
    if (count_of(in) >= tenant_limit || count_of(owner) >= limit)
        return NULL;
    owner = take(&places->callers, owner, key);
    owner->tenant = take(&places->tenants, in, tenant);
    places->taken++;
    return owner;
}

static size_t free_of(const struct caller_places *places)
{
    return CALLER_PLACES - places->taken;
}

struct place_owner *caller_places_take(struct caller_places *places,
                                       struct slice organization, struct slice id,
                                       size_t limit)
{
    return take_place(places, organization, free_of(places), id, limit);
}

static size_t limit_of_strangers(const struct caller_places *places, bool lasts)
{
    size_t half = free_of(places) / 2;
    size_t limit = half < CALLER_PLACES_OF_STRANGERS ? half : CALLER_PLACES_OF_STRANGERS;
    return lasts ? limit - limit / 4 : limit;
}

/* An address that has too many itself takes nothing from others. */
static bool lacks_room(const struct caller_places *places, struct slice address)
{
    const struct place_owner *all = table_find(&places->tenants, slice_of(strangers));
    const struct place_owner *owner = table_find(&places->callers, address);
    return all && all->count >= limit_of_strangers(places, false) &&
           (!address.len || !owner || owner->count < CALLER_PLACES_OF_ADDRESS);
}

struct place_owner *caller_places_take_stranger(struct caller_places *places,
                                                struct slice address, bool lasts)
{
    size_t limit = address.len ? CALLER_PLACES_OF_ADDRESS : CALLER_PLACES_OF_STRANGERS;
    if (!lasts && lacks_room(places, address) && !list_empty(&places->senders))
        places->end_sender(places->senders.next);
    return take_place(places, slice_of(strangers), limit_of_strangers(places, lasts),
                      address, limit);
}

bool place_owner_is_known(const struct place_owner *owner)
{
    return owner->tenant->key[0];
}

void caller_places_note_sender(struct caller_places *places,
                               const struct place_owner *owner, struct list *sender)
{
    if (place_owner_is_known(owner))
        return;
    list_remove(sender);
    list_append(&places->senders, sender);
}

void caller_places_release(struct caller_places *places, struct place_owner *owner)
{
    places->taken--;
    release(&places->tenants, owner->tenant);
    release(&places->callers, owner);
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
    const struct account *account = NULL;
    struct failure why;
    if (call->route && call->route->auth & AUTH_SIGNED)
        account = signed_find(call);
    if (account) {
        *project = account->project;
    } else if (!header.ptr) {
        *user = find_signed_in(call, now_ms);
    } else if (!auth_identify(call->api->auth, header, call->x->peer, now_ms,
                              &call->identity, &why)) {
        *project = project_of(call->identity);
        *user = call->identity->user;
    }
}

/* The organization of a project or a user is missing while it is being removed. */
static struct slice tenant_of(const struct organization *organization, const char *id)
{
    return slice_of(organization ? organization->id : id);
}

struct place_owner *caller_places_take_for(struct caller_places *places,
                                           struct api_call *call)
{
    struct exchange *x = call->x;
    const struct project *project = NULL;
    const struct user *user = NULL;
    identify(call, &project, &user);
    if (project)
        return caller_places_take(places, tenant_of(project->organization, project->id),
                                  slice_of(project->id), CALLER_PLACES_OF_PROJECT);
    if (user)
        return caller_places_take(places, tenant_of(user->organization, user->id),
                                  slice_of(user->id), CALLER_PLACES_OF_USER);
    return caller_places_take_stranger(places, slice_of(x->hidden ? "" : x->peer),
                                       x->wants_upgrade);
}
