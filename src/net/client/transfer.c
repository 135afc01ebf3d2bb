/* transfer.c - calls libuv's thread pool for one read or write after the other. */
#include "net/client/transfer.h"

#include <errno.h>

static void end(struct transfer *transfer)
{
    transfer->busy = false;
    transfer->fn(transfer);
}

static void write_on(struct transfer *transfer);

/* Returns the number of bytes; 0 after an error, which it stores. */
static size_t take_result(struct transfer *transfer)
{
    ssize_t result = transfer->request.result;
    uv_fs_req_cleanup(&transfer->request);
    if (result < 0)
        transfer->error = (int)-result;
    return result < 0 ? 0 : (size_t)result;
}

static void on_read(uv_fs_t *request)
{
    struct transfer *transfer = container_of(request, struct transfer, request);
    transfer->buf.len = take_result(transfer);
    transfer->at += transfer->buf.len;
    end(transfer);
}

static void on_written(uv_fs_t *request)
{
    struct transfer *transfer = container_of(request, struct transfer, request);
    size_t len = take_result(transfer);
    transfer->at += len;
    transfer->done += len;
    if (!len && !transfer->error)
        transfer->error = EIO;
    if (!transfer->error && transfer->done < transfer->buf.len) {
        write_on(transfer);
        return;
    }
    buf_clear(&transfer->buf);
    end(transfer);
}

static void write_on(struct transfer *transfer)
{
    uv_buf_t rest = uv_buf_init(transfer->buf.ptr + transfer->done,
                                (unsigned)(transfer->buf.len - transfer->done));
    uv_fs_write(loop_uv(transfer->loop), &transfer->request, transfer->fd, &rest, 1,
                (int64_t)transfer->at, on_written);
}

void transfer_init(struct transfer *transfer, struct loop *loop, int fd,
                   void (*fn)(struct transfer *transfer))
{
    *transfer = (struct transfer){ .loop = loop, .fd = fd, .fn = fn };
}

void transfer_finish(struct transfer *transfer)
{
    buf_finish(&transfer->buf);
}

void transfer_read(struct transfer *transfer, size_t most)
{
    buf_clear(&transfer->buf);
    uv_buf_t room = uv_buf_init(buf_reserve(&transfer->buf, most), (unsigned)most);
    transfer->busy = true;
    uv_fs_read(loop_uv(transfer->loop), &transfer->request, transfer->fd, &room, 1,
               (int64_t)transfer->at, on_read);
}

void transfer_write(struct transfer *transfer)
{
    transfer->done = 0;
    transfer->busy = true;
    write_on(transfer);
}
