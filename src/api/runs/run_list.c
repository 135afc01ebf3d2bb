/* run_list.c - returns pages of runs, newest first.
 *
 *   query ─► one store read per environment ─► merge by id
 *                                               ─► rows, a turn's share at a time ─► reply
 *
 * A page with large metadata has 25 MB. It is built and sent in chunks, so that nothing of
 * that size is copied or freed in one turn.
 *
 * Ids sort by creation time, so pages of several environments are merged by id and share
 * one cursor. The reads see every acknowledged write, also at a gateway that follows: they
 * use no run in memory. */
#include "api/runs/run_list.h"

#include <assert.h>

#include "api/request/hidden.h"
#include "api/request/project.h"
#include "api/request/quotas.h"
#include "api/runs/run_body.h"
#include "api/runs/run_query.h"
#include "base/mem.h"

/* The part of the list from one environment. */
struct run_list_part {
    struct run_listing *listing;
    const struct account *account;
    struct run_place shown;
    struct store_list list;
};

enum { CHUNK_BYTES = 256 * 1024 };

struct run_list_row {
    struct run *run;
    const struct run_list_part *part;
};

struct run_listing {
    struct api_call *call;
    struct run_query query;
    struct run_read parent; /* for a list of children */
    uint32_t hidden;        /* fields that the token hides */
    struct run_list_part parts[ENVIRONMENT_TYPES];
    size_t part_count, waiting;
    enum store_status status; /* the first one that was not STORE_OK */

    struct run_list_row *rows;
    size_t row_count;
    bool more; /* in the direction of travel */
    size_t written;
    struct bytes **chunks; /* first parts of a long body */
    size_t chunk_count;
    struct buf body; /* the rest of it */
    struct deferred deferred;
};

static void run_listing_finish(struct run_listing *listing)
{
    for (size_t i = 0; i < listing->part_count; i++)
        store_read_finish(&listing->parts[i].list.read);
    for (size_t i = 0; i < listing->chunk_count; i++)
        bytes_unref(listing->chunks[i]);
    free(listing->chunks);
    free(listing->rows);
    buf_finish(&listing->body);
    free(listing);
}

/* ---- the reply ---- */

static void add_cursor(struct buf *body, const char *name, const struct run *run)
{
    char cursor[CURSOR_MAX];
    run_cursor(run->id, cursor);
    if (body->ptr[body->len - 1] != '{')
        buf_add_char(body, ',');
    buf_print(body, "\"%s\":\"%s\"", name, cursor);
}

static void end_chunk(struct run_listing *listing)
{
    size_t size = (listing->chunk_count + 1) * sizeof(struct bytes *);
    listing->chunks = mem_resize(listing->chunks, size);
    listing->chunks[listing->chunk_count++] = buf_to_bytes(&listing->body);
    buf_clear(&listing->body);
}

/* Sends the page. On the side from which it was entered, there is at least the cursor's
 * run. */
static void send(struct run_listing *listing)
{
    const struct run_query *query = &listing->query;
    struct buf *body = &listing->body;
    bool upwards = query->before[0];
    bool older = upwards || listing->more;
    bool newer = upwards ? listing->more : query->after[0];

    buf_add_text(body, "],\"pagination\":{");
    if (listing->row_count && older)
        add_cursor(body, "next", listing->rows[listing->row_count - 1].run);
    if (listing->row_count && newer)
        add_cursor(body, "previous", listing->rows[0].run);
    buf_add_text(body, "}}");
    if (listing->chunk_count) {
        end_chunk(listing);
        api_reply_json_parts(listing->call, 200, listing->chunks, listing->chunk_count);
    } else {
        api_reply_json(listing->call, 200, buf_slice(body));
    }
    run_listing_finish(listing);
}

static void write_rows(struct deferred *deferred)
{
    struct run_listing *listing = container_of(deferred, struct run_listing, deferred);
    struct loop *loop = engine_loop(api_engine(listing->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    while (listing->written < listing->row_count) {
        if (!timeslice_left(&timeslice)) {
            loop_defer(loop, &listing->deferred);
            return;
        }
        const struct run_list_row *row = &listing->rows[listing->written];
        if (listing->written++)
            buf_add_char(&listing->body, ',');
        hidden_clear(listing->hidden, row->run);
        run_body_item(row->run, listing->call->vocabulary, &row->part->shown,
                      &listing->body);
        run_finish(row->run); /* its id stays, for the cursors */
        if (listing->body.len >= CHUNK_BYTES)
            end_chunk(listing);
    }
    send(listing);
}

/* ---- merging ---- */

static int newest_first(const void *a, const void *b)
{
    const struct run_list_row *left = a, *right = b;
    return strcmp(right->run->id, left->run->id);
}

/* Sorts the rows of all environments. Those nearest to the cursor are the page. */
static void merge(struct run_listing *listing)
{
    size_t total = 0, limit = listing->query.limit;
    for (size_t i = 0; i < listing->part_count; i++)
        total += listing->parts[i].list.count;
    listing->rows = mem_new_array(struct run_list_row, total);
    total = 0;
    for (size_t i = 0; i < listing->part_count; i++) {
        const struct run_list_part *part = &listing->parts[i];
        for (size_t j = 0; j < part->list.count; j++)
            listing->rows[total++] = (struct run_list_row){ &part->list.runs[j], part };
        listing->more |= part->list.more;
    }
    qsort(listing->rows, total, sizeof(listing->rows[0]), newest_first);
    listing->row_count = total < limit ? total : limit;
    listing->more |= total > limit;
    if (listing->query.before[0])
        memmove(listing->rows, listing->rows + (total - listing->row_count),
                listing->row_count * sizeof(listing->rows[0]));
}

void run_list_refuse(struct api_call *call, enum store_status status)
{
    if (status == STORE_SLOW) {
        api_add_header(call, "x-should-retry", SLICE("false"));
        api_reply_refusal(call, 503,
                          "Finding the runs of this filter takes too long; ask for fewer "
                          "days with filter[createdAt], or for a tag, task or batch");
    } else {
        api_reply_error(call, err_of_store(status));
    }
}

static void run_listing_refuse(struct run_listing *listing)
{
    run_list_refuse(listing->call, listing->status);
    run_listing_finish(listing);
}

/* Counts the loaded runs as memory of the response, which will be about as large. */
static void hold_rows(struct run_listing *listing)
{
    size_t bytes = 0;
    for (size_t i = 0; i < listing->part_count; i++) {
        const struct store_list *list = &listing->parts[i].list;
        for (size_t j = 0; j < list->count; j++)
            bytes += run_packet_bytes(&list->runs[j]);
    }
    quotas_hold(listing->call, bytes);
}

/* The client has left: the searches that are not needed any more end early. */
static void on_gone(struct api_call *call)
{
    struct run_listing *listing = call->state;
    for (size_t i = 0; i < listing->part_count; i++)
        store_read_abandon(&listing->parts[i].list.read);
}

static void complete(struct run_listing *listing)
{
    listing->call->state = NULL;
    listing->call->on_gone = NULL;
    enum err full = listing->status ? OK : quotas_check_answer(listing->call);
    if (full) {
        api_reply_error(listing->call, full);
        run_listing_finish(listing);
        return;
    }
    if (listing->status) {
        run_listing_refuse(listing);
        return;
    }
    hold_rows(listing);
    merge(listing);
    buf_add_text(&listing->body, "{\"data\":[");
    write_rows(&listing->deferred);
}

static void on_listed(struct store_read *read, enum store_status status)
{
    struct run_listing *listing =
        container_of(read, struct run_list_part, list.read)->listing;
    if (status && !listing->status)
        listing->status = status;
    if (--listing->waiting == 0)
        complete(listing);
}

/* ---- begin ---- */

static void add_part(struct run_listing *listing, const struct account *account)
{
    assert(listing->part_count < ENVIRONMENT_TYPES);
    struct run_list_part *part = &listing->parts[listing->part_count++];
    struct api_call *call = listing->call;
    const struct user *user = call->identity->user;
    if (!user)
        user = accounts_first_user(api_accounts(call->api), account->project->organization);

    part->listing = listing;
    part->account = account;
    part->shown.id = slice_of(account->id);
    part->shown.slug = slice_of(environment_slug(account->type));
    if (account->type == ENVIRONMENT_DEV && user && user->name && user->name[0])
        part->shown.user = slice_of(user->name);
}

static void read_parts(struct run_listing *listing)
{
    struct store *store = engine_store(api_engine(listing->call->api));
    const struct run_query *query = &listing->query;

    listing->call->busy = true;
    listing->call->state = listing;
    listing->call->on_gone = on_gone;
    listing->waiting = listing->part_count;
    for (size_t i = 0; i < listing->part_count; i++) {
        struct store_list *list = &listing->parts[i].list;
        *list = (struct store_list){ .read = { READ_LIST, listing->parts[i].account->number,
                                               on_listed },
                                     .filter = query->filter,
                                     .limit = query->limit };
        memcpy(list->after, query->after, sizeof(list->after));
        memcpy(list->before, query->before, sizeof(list->before));
        store->ops->read(store, &list->read);
    }
    if (!listing->part_count)
        complete(listing);
}

void run_list_report_times(struct api_call *call)
{
    static const char *const times[] = { "filter[createdAt][from]",
                                         "filter[createdAt][to]" };
    for (unsigned i = 0; i < 2; i++)
        if (api_query(call, "filter[createdAt][period]").len &&
            api_query(call, times[i]).len)
            ignored_add_parameter(&call->ignored, slice_of(times[i]));
}

/* Returns NULL if the query was refused and answered. any_time: without a default period of
 * a week. */
static struct run_listing *listing_create(struct api_call *call, bool any_time)
{
    struct run_listing *listing = mem_new(struct run_listing);
    struct failure why = { 0 };
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));

    listing->call = call;
    listing->hidden = hidden_fields(call->identity);
    listing->deferred.fn = write_rows;
    list_init(&listing->deferred.link);
    if (run_query_read(call, any_time, now, &listing->query, &why)) {
        api_reply_details(call, "Query Error", "details", listing->query.wrong, why.text);
        run_listing_finish(listing);
        return NULL;
    }
    run_list_report_times(call);
    return listing;
}

enum err run_list(struct api_call *call)
{
    struct run_listing *listing = listing_create(call, false);
    if (!listing)
        return OK;
    if (!api_identity_may_list(call->identity, &listing->query.filter)) {
        run_listing_finish(listing);
        return ERR_FORBIDDEN;
    }
    add_part(listing, call->account);
    read_parts(listing);
    return OK;
}

/* Adds an environment of the project to the list. For preview, that is one branch, which a
 * header names; the header has no effect if preview is not in the query. */
static enum err add_environment(struct run_listing *listing, const struct project *project,
                                enum environment_type type)
{
    unsigned wanted = listing->query.environments;
    struct account *account;
    if (wanted && !(wanted & 1u << type))
        return OK;
    enum err refused = project_environment(listing->call, project, type, &account);
    if (!refused)
        add_part(listing, account);
    return wanted ? refused : OK;
}

enum err run_list_project(struct api_call *call)
{
    const struct project *project;
    enum err refused = project_find(call, call->params[0], &project);
    if (refused)
        return refused;
    struct run_listing *listing = listing_create(call, false);
    if (!listing)
        return OK;
    for (int type = 0; !refused && type < ENVIRONMENT_TYPES; type++)
        refused = add_environment(listing, project, (enum environment_type)type);
    if (refused)
        run_listing_finish(listing);
    else
        read_parts(listing);
    return refused;
}

/* A caller that may read a run may list the runs that it has triggered, as retrieve
 * does. */
static void on_parent(struct run_read *read, enum err status)
{
    struct run_listing *listing = container_of(read, struct run_listing, parent);
    struct api_call *call = listing->call;
    if (!status)
        status = api_check_run_scope(call, "read", read->run);
    if (status) {
        api_reply_error(call, status);
        run_listing_finish(listing);
        return;
    }
    add_part(listing, call->account);
    read_parts(listing);
}

enum err run_list_children(struct api_call *call)
{
    struct run_listing *listing = listing_create(call, true);
    if (!listing)
        return OK;
    call->busy = true;
    if (listing->query.filter.parent.ptr) /* roots are not children */
        listing->query.filter.nothing = true;
    listing->query.filter.parent = call->params[0];
    run_read_begin(call->env, call->params[0], &listing->parent, on_parent);
    return OK;
}
