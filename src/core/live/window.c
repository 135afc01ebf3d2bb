/* window.c - a set of entries sorted by id, and the last ones that have left it. */
#include "core/live/window.h"

#include <stdlib.h>

#include "base/mem.h"

struct window *window_create(struct environment *env, struct query *query)
{
    struct window *window = mem_new(struct window);
    window->env = env;
    window->query = query;
    window->step = 1;
    list_init(&window->watches);
    return window;
}

void window_destroy(struct window *window)
{
    query_unref(window->query);
    free(window->entries);
    free(window->order);
    free(window->departed);
    free(window->standing);
    free(window);
}

/* A run that was just triggered is newer than every entry. Finding its place takes one
 * comparison, because each entry that is read costs a cache miss. */
uint32_t window_find(const struct window *window, const char *id)
{
    uint32_t low = 0, high = window->count;
    if (high && strcmp(window_entry(window, 0)->id, id) < 0)
        return 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(window_entry(window, middle)->id, id) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct window *window, uint32_t at, const char *id)
{
    return at < window->count && !strcmp(window_entry(window, at)->id, id);
}

static void note_facts(struct window_entry *entry, const struct run *run)
{
    entry->version = run->version;
    entry->rev = run->rev;
    entry->created_at = run->created_at;
    entry->updated_at = run->updated_at;
    entry->is_final = run_is_final(run);
}

static void note_departure(struct window *window, const struct window_entry *entry)
{
    if (!window->departed)
        window->departed = mem_new_array(struct window_departure, WINDOW_DEPARTED);
    struct window_departure *gone =
        &window->departed[window->departures++ % WINDOW_DEPARTED];
    window->step++;
    if (gone->left)
        window->forgotten = gone->left;
    memcpy(gone->id, entry->id, sizeof(gone->id));
    gone->version = entry->version;
    gone->entered = entry->entered;
    gone->left = window->step;
}

static void remove_at(struct window *window, uint32_t at)
{
    uint16_t *order = window->order + at, freed = *order;
    note_departure(window, &window->entries[freed]);
    window->count--;
    memmove(order, order + 1, (window->count - at) * sizeof(*order));
    window->order[window->count] = freed;
}

static void grow(struct window *window)
{
    uint32_t capacity = window->capacity ? window->capacity * 2 : 8;
    window->entries = mem_resize(window->entries, capacity * sizeof(*window->entries));
    window->order = mem_resize(window->order, capacity * sizeof(*window->order));
    for (uint32_t i = window->capacity; i < capacity; i++)
        window->order[i] = (uint16_t)i;
    window->capacity = capacity;
}

static void insert_at(struct window *window, uint32_t at, const struct run *run)
{
    if (window->count == WINDOW_KEPT) {
        remove_at(window, window->count - 1);
        window->more = true;
    }
    if (window->count == window->capacity)
        grow(window);
    uint16_t *order = window->order + at, place = window->order[window->count];
    memmove(order + 1, order, (window->count - at) * sizeof(*order));
    *order = place;
    window->count++;
    struct window_entry *entry = &window->entries[place];
    *entry = (struct window_entry){ .entered = ++window->step };
    memcpy(entry->id, run->id, sizeof(entry->id));
    note_facts(entry, run);
}

/* Returns true if the run is older than every entry, and other runs may be between them. */
static bool is_below(const struct window *window, uint32_t at)
{
    return at == window->count && (window->more || window->count == WINDOW_KEPT);
}

void window_add(struct window *window, const struct run *run)
{
    uint32_t at = window_find(window, run->id);
    if (!is_at(window, at, run->id) && at < WINDOW_KEPT)
        insert_at(window, at, run);
}

bool window_evaluate(struct window *window, const struct run *run, bool wanted)
{
    uint32_t at = window_find(window, run->id);
    bool had = is_at(window, at, run->id);
    if (had && window_entry(window, at)->rev >= run->rev)
        return false; /* it was added as it is now, after this change */
    if (!wanted) {
        if (had)
            remove_at(window, at);
        return had;
    }
    if (had) {
        note_facts(window_entry(window, at), run);
        window->step++;
        return true;
    }
    if (!window->listed || is_below(window, at)) {
        window->more = true;
        return false;
    }
    insert_at(window, at, run);
    return true;
}

void window_take(struct window *window, const char *id)
{
    uint32_t at = window_find(window, id);
    if (is_at(window, at, id))
        remove_at(window, at);
}

bool window_cut(struct window *window, int64_t floor, int64_t from)
{
    bool any = false;
    for (uint32_t i = window->count; i-- > 0;) {
        const struct window_entry *entry = window_entry(window, i);
        if (entry->created_at >= from && !(entry->is_final && entry->updated_at < floor))
            continue;
        remove_at(window, i);
        any = true;
    }
    return any;
}

void window_forget(struct window *window)
{
    free(window->departed);
    window->departed = NULL;
    window->departures = 0;
    window->forgotten = ++window->step;
    window->count = 0;
    window->evaluated = 0;
    window->listed = window->more = window->refused = false;
}

/* ---- the set at an earlier step ---- */

static int newest_first(const void *a, const void *b)
{
    const struct window_member *left = a, *right = b;
    return strcmp(right->id, left->id);
}

/* Finds the runs that were in the set at the step and have left since. */
static uint32_t gone_since(const struct window *window, uint64_t step,
                           struct window_member *members)
{
    uint64_t kept =
        window->departures < WINDOW_DEPARTED ? window->departures : WINDOW_DEPARTED;
    uint32_t count = 0;
    for (uint64_t i = 0; i < kept; i++) {
        const struct window_departure *gone =
            &window->departed[(window->departures - 1 - i) % WINDOW_DEPARTED];
        if (gone->left <= step)
            break;
        if (gone->entered <= step)
            members[count++] = (struct window_member){ gone->id, gone->version, NULL };
    }
    qsort(members, count, sizeof(*members), newest_first);
    return count;
}

/* Returns the current entry of an id, which may have left and returned; NULL: none. */
static const struct window_entry *entry_of(const struct window *window, const char *id)
{
    uint32_t at = window_find(window, id);
    return is_at(window, at, id) ? window_entry(window, at) : NULL;
}

uint32_t window_at(const struct window *window, uint64_t step, uint32_t limit,
                   struct window_member *members)
{
    struct window_member gone[WINDOW_DEPARTED];
    uint32_t departed = gone_since(window, step, gone), next = 0, count = 0;
    for (uint32_t i = 0; count < limit; i++) {
        const struct window_entry *entry =
            i < window->count ? window_entry(window, i) : NULL;
        while (count < limit && next < departed &&
               (!entry || strcmp(gone[next].id, entry->id) >= 0)) {
            gone[next].entry = entry_of(window, gone[next].id);
            members[count++] = gone[next++];
        }
        if (!entry)
            break;
        if (count < limit && entry->entered <= step)
            members[count++] = (struct window_member){ entry->id, entry->version, entry };
    }
    return count;
}
