/* kept_putting.c - puts a file into the store, one request per piece. */
#include "api/artifacts/kept_putting.h"

static uint32_t count_of(const struct kept_putting *putting)
{
    return store_file_pieces(putting->request.size);
}

static void ask_for_piece(struct kept_putting *putting)
{
    int64_t offset = (int64_t)putting->request.piece * FILE_PIECE_BYTES;
    int64_t left = putting->request.size - offset;
    putting->need(putting, offset,
                  left < FILE_PIECE_BYTES ? (size_t)left : (size_t)FILE_PIECE_BYTES);
}

static void on_put(struct store_file *req, enum store_status status)
{
    struct kept_putting *putting = container_of(req, struct kept_putting, request);
    if (status || !req->piece) {
        putting->done(putting, err_of_store(status));
        return;
    }
    req->piece = (req->piece + 1) % count_of(putting);
    ask_for_piece(putting);
}

static void on_removed(struct store_file *req, enum store_status status)
{
    struct kept_putting *putting = container_of(req, struct kept_putting, request);
    if (status) {
        putting->done(putting, err_of_store(status));
        return;
    }
    req->piece = 1;
    ask_for_piece(putting);
}

void kept_putting_begin(struct kept_putting *putting)
{
    struct store_file *request = &putting->request;
    request->piece = 0;
    if (count_of(putting) == 1) {
        ask_for_piece(putting);
        return;
    }
    request->step = FILE_REMOVE;
    request->done = on_removed;
    putting->store->ops->file(putting->store, request);
}

void kept_putting_give(struct kept_putting *putting, struct slice piece)
{
    struct store_file *request = &putting->request;
    request->step = FILE_PUT;
    request->content = piece;
    request->done = on_put;
    putting->store->ops->file(putting->store, request);
}

void kept_putting_fail(struct kept_putting *putting, enum err status)
{
    putting->done(putting, status);
}
