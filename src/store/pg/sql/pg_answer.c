/* pg_answer.c - decodes results of reads, sorts the rows of pages and cuts them by size.
 *
 * They are sorted here because the database returns them in any order. */
#include "store/pg/sql/pg_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/pg/sql/pg_rows.h"

static enum store_status answer_load(struct store_read *read, const PGresult *answer)
{
    struct store_load *req = container_of(read, struct store_load, read);
    if (!PQntuples(answer))
        return STORE_MISSING;
    if (req->is_document) {
        req->document = pg_rows_read_document(answer, 0, req->kind);
        return STORE_OK;
    }
    read->env = (uint32_t)pg_rows_number(answer, 0, 0);
    pg_rows_read_run(answer, 0, 1, STORE_PACKETS, &req->run);
    return STORE_OK;
}

static enum store_status answer_piece(struct store_read *read, const PGresult *answer)
{
    struct store_piece *req = container_of(read, struct store_piece, read);
    if (!PQntuples(answer))
        return STORE_MISSING;
    uint64_t seq = (uint64_t)pg_rows_number(answer, 0, 0);
    bool is_other = req->seq && req->seq != seq;
    if (!is_other)
        req->piece = bytes_create(pg_rows_bytes(answer, 0, 2));
    req->seq = seq;
    req->total = (size_t)pg_rows_number(answer, 0, 1);
    return is_other ? STORE_LOST : STORE_OK;
}

/* A page: runs until they exceed the byte limit, and whether there are more. */
struct pg_found {
    struct run *runs;
    size_t count;
    bool more;
    uint64_t seq;
};

typedef int run_order_fn(const void *run, const void *other);

static int newest_id_first(const void *run, const void *other)
{
    return strcmp(((const struct run *)other)->id, ((const struct run *)run)->id);
}

static int oldest_rev_first(const void *run, const void *other)
{
    uint64_t left = ((const struct run *)run)->rev,
             right = ((const struct run *)other)->rev;
    return (left > right) - (left < right);
}

static int newest_rev_first(const void *run, const void *other)
{
    return oldest_rev_first(other, run);
}

/* Returns how many runs to keep until they exceed the limit, and frees the others. */
static size_t cut_page(struct run *runs, size_t count, size_t byte_limit)
{
    size_t kept = 0, bytes = 0;
    for (; kept < count && !(byte_limit && bytes > byte_limit); kept++)
        bytes += run_packet_bytes(&runs[kept]);
    for (size_t i = kept; i < count; i++)
        run_finish(&runs[i]);
    return kept;
}

/* Decodes, sorts and cuts a page. If the read is abandoned, the rest of it stays empty. */
static struct pg_found read_page(const struct store_read *read, const PGresult *answer,
                                 enum store_parts parts, size_t byte_limit,
                                 run_order_fn *order)
{
    int rows = PQntuples(answer);
    struct pg_found page = { 0 };
    if (rows)
        page.seq = (uint64_t)pg_rows_number(answer, 0, 0);
    if (!rows || PQgetisnull(answer, 0, 1))
        return page;
    page.runs = mem_new_array(struct run, (size_t)rows);
    for (int row = 0; row < rows && !store_read_is_abandoned(read); row++)
        pg_rows_read_run(answer, row, 2, parts, &page.runs[row]);
    qsort(page.runs, (size_t)rows, sizeof(page.runs[0]), order);
    page.count = cut_page(page.runs, (size_t)rows, byte_limit);
    page.more = (size_t)pg_rows_number(answer, 0, 1) > page.count;
    return page;
}

static enum store_status answer_list(struct store_read *read, const PGresult *answer)
{
    struct store_list *req = container_of(read, struct store_list, read);
    struct pg_found page =
        read_page(read, answer, req->parts, req->byte_limit, newest_id_first);
    req->runs = page.runs;
    req->count = page.count;
    req->more = page.more;
    req->seq = page.seq;
    return STORE_OK;
}

static enum store_status answer_walk(struct store_read *read, const PGresult *answer)
{
    struct store_walk *req = container_of(read, struct store_walk, read);
    struct pg_found page =
        read_page(read, answer, STORE_PACKETS, req->byte_limit,
                  req->newest_first ? newest_rev_first : oldest_rev_first);
    req->runs = page.runs;
    req->count = page.count;
    req->more = page.more;
    req->seq = page.seq;
    return STORE_OK;
}

static enum store_status answer_count(struct store_read *read, const PGresult *answer)
{
    struct store_count *req = container_of(read, struct store_count, read);
    memset(req->counts, 0, sizeof(req->counts));
    for (int row = 0; row < PQntuples(answer); row++) {
        int64_t status = pg_rows_number(answer, row, 1);
        req->seq = (uint64_t)pg_rows_number(answer, row, 0);
        if (!PQgetisnull(answer, row, 1) && status >= 0 && status < RUN_STATUS_COUNT)
            req->counts[status] = (uint64_t)pg_rows_number(answer, row, 2);
    }
    return STORE_OK;
}

static enum store_status answer_scan(struct store_read *read, const PGresult *answer)
{
    struct store_scan *req = container_of(read, struct store_scan, read);
    size_t rows = (size_t)PQntuples(answer);
    req->documents = rows ? mem_new_array(struct document, rows) : NULL;
    for (req->count = 0; req->count < rows; req->count++) {
        struct document *document = &req->documents[req->count];
        *document = pg_rows_read_document(answer, (int)req->count, req->kind);
        if (req->of_claims)
            document->stale_at = pg_rows_number(answer, (int)req->count, 4);
    }
    req->more = req->limit && rows && (size_t)pg_rows_number(answer, 0, 4) > rows;
    return STORE_OK;
}

enum store_status pg_answer_read(struct store_read *read, const PGresult *answer)
{
    static enum store_status (*const answers[])(struct store_read *, const PGresult *) = {
        [READ_LOAD] = answer_load,   [READ_PIECE] = answer_piece, [READ_LIST] = answer_list,
        [READ_COUNT] = answer_count, [READ_WALK] = answer_walk,   [READ_SCAN] = answer_scan,
    };
    return answers[read->kind](read, answer);
}
