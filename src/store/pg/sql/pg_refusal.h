/* pg_refusal.h - maps a server error to a remedy, by its SQLSTATE. */
#pragma once

enum pg_remedy {
    PG_REPEAT,     /* retry on another connection; no caller is informed */
    PG_NO_SPACE,   /* the disk is full */
    PG_ONE_BY_ONE, /* a value that the database rejects: send the requests one by one */
    PG_STOPPED,    /* it took too long and was canceled */
    PG_REFUSED     /* the operator has to fix something */
};

/* sqlstate may be NULL: unknown. */
enum pg_remedy pg_remedy_of(const char *sqlstate);
