/* run.c - a run as a value: copy, release, sizes, and the names of statuses and machines.
 *
 * Every text of a run is in one of the two lists below, so that copying, releasing and
 * sharing cannot miss one. The transitions are in core/model/run_life.c. */
#include "runcast/run.h"

#include <assert.h>
#include <stdio.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "base/table.h"

/* ---- values ---- */

enum text_kind {
    TEXT_OWN,
    TEXT_NAME, /* shared by many runs */
    TEXT_PACKET,
};

struct text_field {
    size_t offset; /* of a struct bytes * */
    enum text_kind kind;
};

static const struct text_field run_texts[] = {
    { offsetof(struct run, task), TEXT_NAME },
    { offsetof(struct run, queue), TEXT_NAME },
    { offsetof(struct run, worker_version), TEXT_NAME },
    { offsetof(struct run, batch), TEXT_NAME },
    { offsetof(struct run, worker_request), TEXT_OWN },
    { offsetof(struct run, payload), TEXT_PACKET },
    { offsetof(struct run, output), TEXT_PACKET },
    { offsetof(struct run, metadata), TEXT_PACKET },
    { offsetof(struct run, metadata_seed), TEXT_PACKET },
    { offsetof(struct run, error), TEXT_PACKET },
};

static const struct text_field rare_texts[] = {
    { offsetof(struct run_rare, concurrency_key), TEXT_NAME },
    { offsetof(struct run_rare, limits), TEXT_NAME },
    { offsetof(struct run_rare, ttl), TEXT_NAME },
    { offsetof(struct run_rare, region), TEXT_NAME },
    { offsetof(struct run_rare, parent), TEXT_NAME },
    { offsetof(struct run_rare, root), TEXT_NAME },
    { offsetof(struct run_rare, schedule), TEXT_NAME },
    { offsetof(struct run_rare, bulk), TEXT_NAME },
    { offsetof(struct run_rare, idempotency_key), TEXT_OWN },
    { offsetof(struct run_rare, idempotency_shown), TEXT_OWN },
    { offsetof(struct run_rare, waits), TEXT_OWN },
    { offsetof(struct run_rare, payload_type), TEXT_NAME },
    { offsetof(struct run_rare, output_type), TEXT_NAME },
    { offsetof(struct run_rare, streams), TEXT_NAME },
    { offsetof(struct run_rare, metadata_request), TEXT_OWN },
    { offsetof(struct run_rare, external_deployment), TEXT_NAME },
};

enum {
    RUN_TEXTS = sizeof(run_texts) / sizeof(run_texts[0]),
    RARE_TEXTS = sizeof(rare_texts) / sizeof(rare_texts[0]),
};

const struct run_rare run_rare_none;

static struct bytes **text_at(void *fields, const struct text_field *field)
{
    return (struct bytes **)((char *)fields + field->offset);
}

static void rare_unref(struct run_rare *rare)
{
    if (!rare || --rare->refs > 0)
        return;
    for (size_t i = 0; i < RARE_TEXTS; i++)
        bytes_unref(*text_at(rare, &rare_texts[i]));
    free(rare);
}

struct run_rare *run_rare_edit(struct run *run)
{
    struct run_rare *shared = run->rare;
    if (shared && shared->refs == 1)
        return shared;
    run->rare = mem_new(struct run_rare);
    if (shared) {
        *run->rare = *shared;
        for (size_t i = 0; i < RARE_TEXTS; i++)
            bytes_ref(*text_at(run->rare, &rare_texts[i]));
        rare_unref(shared);
    }
    run->rare->refs = 1;
    return run->rare;
}

void run_copy(struct run *to, const struct run *from)
{
    *to = *from;
    for (size_t i = 0; i < RUN_TEXTS; i++)
        bytes_ref(*text_at(to, &run_texts[i]));
    tag_list_ref(to->tags);
    if (to->rare)
        to->rare->refs++;
}

void run_finish(struct run *run)
{
    for (size_t i = 0; i < RUN_TEXTS; i++)
        bytes_clear(text_at(run, &run_texts[i]));
    tag_list_unref(run->tags);
    run->tags = NULL;
    rare_unref(run->rare);
    run->rare = NULL;
}

static void share(struct bytes **place)
{
    if (!*place)
        return;
    struct bytes *shared = bytes_create_shared(bytes_slice(*place));
    bytes_unref(*place);
    *place = shared;
}

enum { SHARED_LISTS = 4096 };

static struct tag_list *shared_lists[SHARED_LISTS];

static bool same_list(const struct tag_list *a, const struct tag_list *b)
{
    return a->count == b->count &&
           !memcmp(a->names, b->names, a->count * sizeof(a->names[0]));
}

/* Shares a list of tags. Shared names are equal exactly if their pointers are. */
static void share_list(struct tag_list **place)
{
    if (!*place)
        return;
    struct slice names = { (const char *)(*place)->names,
                           (*place)->count * sizeof((*place)->names[0]) };
    struct tag_list **slot = &shared_lists[table_hash(names) % SHARED_LISTS];
    if (!*slot || !same_list(*slot, *place)) {
        tag_list_unref(*slot);
        *slot = tag_list_ref(*place);
        return;
    }
    tag_list_ref(*slot);
    tag_list_unref(*place);
    *place = *slot;
}

void tag_list_forget_shared(void)
{
    for (size_t i = 0; i < SHARED_LISTS; i++) {
        tag_list_unref(shared_lists[i]);
        shared_lists[i] = NULL;
    }
}

static void share_texts(void *fields, const struct text_field *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (texts[i].kind == TEXT_NAME)
            share(text_at(fields, &texts[i]));
}

void run_share_names(struct run *run)
{
    share_texts(run, run_texts, RUN_TEXTS);
    if (run->rare && run->rare->refs == 1)
        share_texts(run->rare, rare_texts, RARE_TEXTS);
    if (!run->tags || run->tags->refs > 1)
        return; /* others may be reading the list, maybe on another thread */
    for (uint32_t i = 0; i < run->tags->count; i++)
        share(&run->tags->names[i]);
    share_list(&run->tags);
}

static size_t heap_bytes(const struct bytes *bytes)
{
    return bytes ? sizeof(*bytes) + bytes->len + 1 : 0;
}

size_t run_packet_bytes(const struct run *run)
{
    size_t sum = 0;
    for (size_t i = 0; i < RUN_TEXTS; i++)
        if (run_texts[i].kind == TEXT_PACKET)
            sum += heap_bytes(*text_at((struct run *)run, &run_texts[i]));
    if (run->metadata == run->metadata_seed) /* one text until metadata changes */
        sum -= heap_bytes(run->metadata);
    return sum;
}

static size_t text_bytes(const void *fields, const struct text_field *texts, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += bytes_slice(*text_at((void *)fields, &texts[i])).len;
    return sum;
}

size_t run_text_bytes(const struct run *run)
{
    return text_bytes(run, run_texts, RUN_TEXTS) +
           text_bytes(run_rare(run), rare_texts, RARE_TEXTS);
}

size_t run_tag_bytes(const struct run *run)
{
    size_t sum = 0;
    for (uint32_t i = 0; run->tags && i < run->tags->count; i++) {
        size_t len = run->tags->names[i]->len;
        sum += len + sizeof(":,"); /* and one digit of the length */
        while (len /= 10)
            sum++;
    }
    return sum;
}

struct tag_list *tag_list_create(const struct slice *names, size_t count)
{
    if (count == 0)
        return NULL;
    struct tag_list *tags = mem_new_flex(struct tag_list, count * sizeof(tags->names[0]));
    tags->refs = 1;
    tags->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        tags->names[i] = bytes_create(names[i]);
    return tags;
}

struct tag_list *tag_list_ref(struct tag_list *tags)
{
    if (tags)
        tags->refs++;
    return tags;
}

void tag_list_unref(struct tag_list *tags)
{
    if (!tags)
        return;
    assert(tags->refs > 0);
    if (--tags->refs > 0)
        return;
    for (uint32_t i = 0; i < tags->count; i++)
        bytes_unref(tags->names[i]);
    free(tags);
}

bool run_has_stream(const struct run *run, struct slice key)
{
    struct scan_members keys = scan_members(bytes_slice(run_rare(run)->streams));
    struct slice one;
    while (scan_next_element(&keys, &one))
        if (scan_key_is(scan_unquoted(one), key))
            return true;
    return false;
}

size_t run_count_streams(const struct run *run)
{
    struct scan_members keys = scan_members(bytes_slice(run_rare(run)->streams));
    struct slice one;
    size_t count = 0;
    while (scan_next_element(&keys, &one))
        count++;
    return count;
}

void run_snapshot_id(const struct run *run, char out[64])
{
    snprintf(out, 64, "snapshot_%s-n%010u", run->id, run->snapshot);
}

/* ---- names ---- */

/* clang-format off */
static const char *const status_names[RUN_STATUS_COUNT][3] = {
    /* by vocabulary: A, B, internal */
    [RUN_DELAYED] =         { "DELAYED",            "DELAYED", "DELAYED" },
    [RUN_PENDING_VERSION] = { "WAITING_FOR_DEPLOY", "PENDING_VERSION", "PENDING_VERSION" },
    [RUN_QUEUED] =          { "QUEUED",             "QUEUED", "PENDING" },
    [RUN_DEQUEUED] =        { "EXECUTING",          "DEQUEUED", "DEQUEUED" },
    [RUN_EXECUTING] =       { "EXECUTING",          "EXECUTING", "EXECUTING" },
    [RUN_RETRYING] =        { "REATTEMPTING",       "EXECUTING", "RETRYING_AFTER_FAILURE" },
    [RUN_WAITING] =         { "FROZEN",             "WAITING", "WAITING_TO_RESUME" },
    [RUN_CANCELED] =        { "CANCELED",           "CANCELED", "CANCELED" },
    [RUN_COMPLETED] =       { "COMPLETED",          "COMPLETED", "COMPLETED_SUCCESSFULLY" },
    [RUN_FAILED] =          { "FAILED",             "FAILED", "COMPLETED_WITH_ERRORS" },
    [RUN_INTERRUPTED] =     { "INTERRUPTED",        "FAILED", "INTERRUPTED" },
    [RUN_CRASHED] =         { "CRASHED",            "CRASHED", "CRASHED" },
    [RUN_SYSTEM_FAILURE] =  { "SYSTEM_FAILURE",     "SYSTEM_FAILURE", "SYSTEM_FAILURE" },
    [RUN_EXPIRED] =         { "EXPIRED",            "EXPIRED", "EXPIRED" },
    [RUN_TIMED_OUT] =       { "TIMED_OUT",          "TIMED_OUT", "TIMED_OUT" },
};

static const char *const execution_names[EXECUTION_COUNT] = {
    [EXECUTION_CREATED]           = "RUN_CREATED",
    [EXECUTION_DELAYED]           = "DELAYED",
    [EXECUTION_QUEUED]            = "QUEUED",
    [EXECUTION_PENDING_EXECUTING] = "PENDING_EXECUTING",
    [EXECUTION_EXECUTING]         = "EXECUTING",
    [EXECUTION_WITH_WAITPOINTS]   = "EXECUTING_WITH_WAITPOINTS",
    [EXECUTION_PENDING_CANCEL]    = "PENDING_CANCEL",
    [EXECUTION_FINISHED]          = "FINISHED",
};

static const struct {
    const char *name;
    double cpu, memory_gb;
} machines[MACHINE_COUNT] = {
    [MACHINE_MICRO]     = { "micro",     0.25, 0.25 },
    [MACHINE_SMALL_1X]  = { "small-1x",  0.5,  0.5 },
    [MACHINE_SMALL_2X]  = { "small-2x",  1,    1 },
    [MACHINE_MEDIUM_1X] = { "medium-1x", 1,    2 },
    [MACHINE_MEDIUM_2X] = { "medium-2x", 2,    4 },
    [MACHINE_LARGE_1X]  = { "large-1x",  4,    8 },
    [MACHINE_LARGE_2X]  = { "large-2x",  8,    16 },
};
/* clang-format on */

const char *run_status_name(enum run_status status, enum vocabulary vocabulary)
{
    assert(status < RUN_STATUS_COUNT);
    return status_names[status][vocabulary];
}

static unsigned statuses_shown_as(struct slice word, enum vocabulary vocabulary)
{
    unsigned set = 0;
    for (unsigned status = 0; status < RUN_STATUS_COUNT; status++)
        if (slice_is(word, status_names[status][vocabulary]))
            set |= 1U << status;
    return set;
}

unsigned run_statuses_named(struct slice word, enum vocabulary vocabulary)
{
    unsigned set = statuses_shown_as(word, vocabulary);
    if (!set)
        set = statuses_shown_as(word, VOCABULARY_A);
    if (!set)
        set = statuses_shown_as(word, VOCABULARY_B);
    return set;
}

size_t run_count_words(enum vocabulary vocabulary, const uint64_t *counts,
                       struct run_word_count words[RUN_STATUS_COUNT])
{
    size_t used = 0;
    for (int i = 0; i < RUN_STATUS_COUNT; i++) {
        const char *word = run_status_name((enum run_status)i, vocabulary);
        size_t at = 0;
        while (at < used && strcmp(words[at].word, word))
            at++;
        if (at == used && counts[i])
            words[used++] = (struct run_word_count){ word, 0 };
        if (counts[i])
            words[at].count += counts[i];
    }
    return used;
}

const char *run_execution_name(enum run_execution execution)
{
    assert(execution < EXECUTION_COUNT);
    return execution_names[execution];
}

const char *machine_name(enum machine machine)
{
    assert(machine < MACHINE_COUNT);
    return machines[machine].name;
}

enum err machine_from_name(struct slice name, enum machine *machine)
{
    for (unsigned i = 0; i < MACHINE_COUNT; i++) {
        if (slice_is(name, machines[i].name)) {
            *machine = (enum machine)i;
            return OK;
        }
    }
    return ERR_INVALID;
}

double machine_cpu(enum machine machine)
{
    assert(machine < MACHINE_COUNT);
    return machines[machine].cpu;
}

double machine_memory_gb(enum machine machine)
{
    assert(machine < MACHINE_COUNT);
    return machines[machine].memory_gb;
}
