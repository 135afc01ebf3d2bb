/* transfer.h - reads or writes a file, off the loop; private to client.
 *
 * A disk may take seconds, while the loop must serve others. One call at a time. */
#pragma once

#include <uv.h>

#include "base/buf.h"
#include "base/loop.h"

struct transfer {
    uv_fs_t request;
    struct loop *loop;
    int fd;
    uint64_t at;    /* offset in the file of the next call */
    struct buf buf; /* bytes that were read, or are being written and then discarded */
    size_t done;    /* written bytes of buf */
    bool busy;
    int error;                             /* errno; 0: no error */
    void (*fn)(struct transfer *transfer); /* called when the operation ends */
};

void transfer_init(struct transfer *transfer, struct loop *loop, int fd,
                   void (*fn)(struct transfer *transfer));

/* It must not be busy. */
void transfer_finish(struct transfer *transfer);

/* Replaces the buffer with the next bytes of the file, at most `most`. An empty buffer
 * without an error means the end of the file. */
void transfer_read(struct transfer *transfer, size_t most);

/* Writes the whole buffer to the file. */
void transfer_write(struct transfer *transfer);
