/* pg_refusal.h - what the driver does about an error of the server, by its SQLSTATE. */
#pragma once

enum pg_remedy {
    PG_REPEAT,     /* on another connection, the same again: nobody is told anything */
    PG_NO_SPACE,   /* the disk is full */
    PG_ONE_BY_ONE, /* a value that the database does not take: whose it is is found out */
    PG_STOPPED,    /* it took too long, and was ended */
    PG_REFUSED     /* something that the operator has to put right */
};

/* NULL: it did not say. */
enum pg_remedy pg_remedy_of(const char *sqlstate);
