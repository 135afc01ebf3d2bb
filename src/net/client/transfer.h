/* transfer.h - reads from a file, or writes to one, off the loop; private to client.
 *
 * A disk may take seconds, and the loop has others to serve meanwhile. One call at a time. */
#pragma once

#include <uv.h>

#include "base/buf.h"
#include "base/loop.h"

struct transfer {
    uv_fs_t request;
    struct loop *loop;
    int fd;
    uint64_t at;    /* where in the file the next call begins */
    struct buf buf; /* what was read; or is being written, and dropped then */
    size_t done;    /* bytes of it that are written */
    bool busy;
    int error;                             /* errno; 0: all went well */
    void (*fn)(struct transfer *transfer); /* when it is not busy any more */
};

void transfer_init(struct transfer *transfer, struct loop *loop, int fd,
                   void (*fn)(struct transfer *transfer));

/* Not while it is busy. */
void transfer_finish(struct transfer *transfer);

/* The next bytes of the file, at most so many, replace what the buffer holds. An empty buffer
 * and no error: the file has ended. */
void transfer_read(struct transfer *transfer, size_t most);

/* Everything in the buffer goes to the file. */
void transfer_write(struct transfer *transfer);
