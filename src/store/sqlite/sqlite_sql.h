/* sqlite_sql.h - the statements that are prepared once per connection. */
#pragma once

#include "base/buf.h"

enum sqlite_statement {
    SQL_BEGIN,
    SQL_BEGIN_READ,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVEPOINT,
    SQL_ROLLBACK_TO,
    SQL_RELEASE,

    SQL_INSERT_RUN,
    SQL_UPDATE_RUN,
    SQL_LOAD_RUN,
    SQL_LOAD_METADATA, /* a run without payload and output */
    SQL_LOAD_FACTS,    /* also without metadata */
    SQL_GET_TAGS,
    SQL_PUT_TAGS,
    SQL_INSERT_TAG,
    SQL_DELETE_TAG,
    SQL_PUT_PAYLOAD,
    SQL_PUT_METADATA,
    SQL_PUT_OUTPUT,
    SQL_SIZE_RUN, /* its texts that an update writes, one per column */
    SQL_SIZE_PAYLOAD,
    SQL_SIZE_METADATA,
    SQL_SIZE_OUTPUT,
    SQL_SIZE_DOCUMENT,

    SQL_INSERT_DOCUMENT,
    SQL_UPDATE_DOCUMENT,
    SQL_DELETE_DOCUMENT,
    SQL_LOAD_DOCUMENT,
    SQL_LOAD_PIECE,
    SQL_HAS_DOCUMENT,
    SQL_SCAN,
    SQL_SCAN_ENV,
    SQL_SCAN_CLAIMS,
    SQL_SCAN_CLAIMS_ENV,
    SQL_SCAN_UP,
    SQL_SCAN_DOWN,

    SQL_TAKE_CLAIM,
    SQL_TAKE_OVER_CLAIM,
    SQL_RELEASE_CLAIM,
    SQL_CLAIM_OWNER,
    SQL_SWEEP_CLAIMS,
    SQL_BRIEF_CLAIMS,
    SQL_BRIEF_CLAIM,
    SQL_TAKE_BRIEF_CLAIM,
    SQL_SWEEP_BRIEF_CLAIMS,

    SQL_POSITIONS,
    SQL_GET_SEQ,
    SQL_PUT_SEQ,
    SQL_PUT_STORED,
    SQL_GET_NUMBER,
    SQL_PUT_NUMBER,

    SQL_PURGE_PICK,
    SQL_PURGE_RUN,
    SQL_PURGE_PAYLOAD,
    SQL_PURGE_METADATA,
    SQL_PURGE_OUTPUT,
    SQL_PURGE_TRACE,
    SQL_PURGE_PIECES,
    SQL_PUT_PURGED,
    SQL_PURGE_BATCHES,
    SQL_PURGE_PACKETS,
    SQL_PURGE_WAITPOINTS,
    SQL_PURGE_CLAIMS,
    SQL_PURGE_NUMBERS,

    SQL_SEQ,
    SQL_EPOCH,
    SQL_RENEW_EPOCH,
    SQL_PROBE,
    SQL_STATEMENT_COUNT
};

/* Appends the text of the statement. */
void sqlite_sql_add(struct buf *sql, enum sqlite_statement which);
