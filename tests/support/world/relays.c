/* relays.c - notes each relay, and checks at the end which of its runs have counted it. */
#include "tests/support/world/relays.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum { GENERATIONS = 3 };

struct relay_note {
    unsigned number;
    char runs[GENERATIONS][ID_MAX]; /* "": none */
    bool is_request, acknowledged;
    struct list link; // relays::notes
};

void relays_init(struct relays *relays, struct world *world, struct draws *draws)
{
    *relays = (struct relays){ .world = world, .ledger = ledger_of(world), .draws = draws };
    list_init(&relays->notes);
}

void relays_finish(struct relays *relays)
{
    while (!list_empty(&relays->notes))
        free(container_of(list_take(&relays->notes), struct relay_note, link));
}

static struct relay_note *new_note(struct relays *relays, const struct story *story,
                                   bool is_request)
{
    struct relay_note *note = mem_new(struct relay_note);
    note->number = ++relays->count;
    note->is_request = is_request;
    for (int i = 0; story && i < GENERATIONS; i++) {
        snprintf(note->runs[i], ID_MAX, "%s", story->id);
        struct slice parent = bytes_slice(run_rare(&story->versions[0])->parent);
        story = parent.ptr ? ledger_find(relays->ledger, parent) : NULL;
    }
    list_append(&relays->notes, &note->link);
    return note;
}

/* A run recognizes only its last request as a repetition. */
static struct relay_note *last_request(struct relays *relays, const struct story *story)
{
    struct relay_note *last = NULL;
    list_each (link, &relays->notes) {
        struct relay_note *note = container_of(link, struct relay_note, link);
        if (note->is_request && !strcmp(note->runs[0], story->id))
            last = note;
    }
    return last;
}

static void write_operations(struct relay *relay)
{
    snprintf(relay->operations, sizeof(relay->operations),
             "[{\"type\":\"increment\",\"key\":\"k%u\",\"value\":1}]", relay->note->number);
    snprintf(relay->request, sizeof(relay->request), "q%u", relay->note->number);
}

static void join_others(struct relay *relay, struct command *command)
{
    for (int i = 1; i < GENERATIONS && relay->note->runs[i][0]; i++) {
        relay->changes[i].operations = slice_of(relay->operations);
        run_join_metadata(command, slice_of(relay->note->runs[i]), &relay->changes[i]);
    }
}

struct request {
    struct relay relay;
    struct relays *relays;
};

static void on_changed(struct command *command, enum err status)
{
    struct request *request =
        container_of(command, struct request, relay.changes[0].command);
    if (!status && !*request->relays->dead)
        relay_acknowledge(&request->relay);
    --*request->relays->under_way;
    free(request);
}

static const struct story *any_child(struct relays *relays)
{
    const struct story *story = NULL;
    for (int tries = 0; tries < 10 && relays->ledger->count; tries++) {
        uint32_t count = (uint32_t)relays->ledger->count;
        story = ledger_story(relays->ledger, draw(relays->draws, count));
        if (run_rare(&story->versions[0])->parent)
            break;
    }
    return story;
}

void relays_request(struct relays *relays)
{
    struct world *world = relays->world;
    const struct story *story = any_child(relays);
    if (!story)
        return;
    struct request *request = mem_new(struct request);
    struct relay *relay = &request->relay;
    struct change_metadata *own = &relay->changes[0];
    struct relay_note *last = last_request(relays, story);
    bool again = last && chance(relays->draws, last->acknowledged ? 200 : 800);

    request->relays = relays;
    ++*relays->under_way;
    relay->note = again ? last : new_note(relays, story, true);
    write_operations(relay);
    own->operations = slice_of(relay->operations);
    own->request_id = slice_of(relay->request);
    run_change_metadata(world->engine, world->env, slice_of(story->id), own, on_changed);
    join_others(relay, &own->command);
}

void relay_prepare(struct relays *relays, struct relay *relay, const struct story *story,
                   struct complete_attempt *op)
{
    relay->note = new_note(relays, story, false);
    write_operations(relay);
    op->metadata_operations = slice_of(relay->operations);
}

void relay_join(struct relay *relay, struct complete_attempt *op)
{
    join_others(relay, &op->command);
}

void relay_acknowledge(struct relay *relay)
{
    relay->note->acknowledged = true;
}

/* ---- the end ---- */

static unsigned value_of(const struct run *run, const char *key)
{
    const char *at = run->metadata ? strstr(run->metadata->data, key) : NULL;
    return at ? (unsigned)strtoul(at + strlen(key), NULL, 10) : 0;
}

/* The metadata may have been replaced since: each increase counts. */
static unsigned times_counted(const struct relays *relays, const char *id, const char *key)
{
    const struct story *story = ledger_find(relays->ledger, slice_of(id));
    unsigned times = 0, before = 0;
    for (uint32_t i = 0; i < story->count; i++) {
        if (i && story->versions[i].metadata == story->versions[i - 1].metadata)
            continue;
        unsigned value = value_of(&story->versions[i], key);
        times += value > before;
        before = value;
    }
    return times;
}

void relays_check(const struct relays *relays)
{
    list_each (link, &relays->notes) {
        const struct relay_note *note = container_of(link, struct relay_note, link);
        char key[16];
        snprintf(key, sizeof(key), "\"k%u\":", note->number);
        unsigned own = times_counted(relays, note->runs[0], key);
        if (own > 1 || (note->acknowledged && own != 1))
            violated("%s counted %s %u times, %s", note->runs[0], key, own,
                     note->acknowledged ? "acknowledged" : "not acknowledged");
        for (int i = 1; i < GENERATIONS && note->runs[i][0]; i++)
            if (times_counted(relays, note->runs[i], key) != own)
                violated("%s counted %s %u times, its %s %s %u times", note->runs[0], key,
                         own, i == 1 ? "parent" : "grandparent", note->runs[i],
                         times_counted(relays, note->runs[i], key));
    }
}
