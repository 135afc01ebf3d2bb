/* options.h - the options of all subcommands, one table row each.
 *
 * Environment variables have the same names as for the SDKs, so a shell that can run a
 * worker can also run the bench. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum command {
    COMMAND_FANOUT = 1,
    COMMAND_TRIGGER = 2,
    COMMAND_SNAPSHOT = 4,
    COMMAND_SCALE = 8,
    COMMAND_DEQUEUE = 16,
    COMMAND_UPGRADE = 32,
    COMMAND_RETRIEVE = 64,
    COMMAND_BARE = 128,
};

struct options {
    const char *url, *key;
    int64_t pid; /* of the server; 0: do not measure its CPU and memory */
    bool json;
    const char *ca; /* for https: authority in addition to the system's; "": none */
    bool insecure;  /* do not verify its certificate */
    bool secure;    /* the URL is https */

    int64_t subscribers;
    const char *topic;     /* tag, run, batch or all */
    const char *transport; /* ws, longpoll or sse */
    const char *encoding;  /* of ws: json or msgpack */
    const char *by;        /* metadata: PUT …/metadata; batch: a batch of new runs */
    double rate;           /* changes per second */
    int64_t burst;         /* changes at one instant */
    int64_t ahead;         /* max changes in flight; 0: no limit */
    int64_t runs;
    bool interleave; /* every second burst changes runs without subscribers */
    double seconds;
    int64_t pad;         /* bytes of a text in the metadata of each change */
    bool floor;          /* the server is runcast-floor */
    const char *peer;    /* the server is this one (peer.h); "" or NULL: none */
    int64_t frame_bytes; /* of the floor's and a peer's messages */

    const char *project; /* its ref */
    int64_t workers;     /* with a held poll */

    int64_t concurrency;
    int64_t count; /* stop after this many; 0: after seconds */
    int64_t payload_bytes;
    bool quotes;   /* payloads of quotes, which are escaped */
    int64_t batch; /* items per batch; 0: single triggers */
    const char *delay;
    const char *sizes; /* sizes of the table of runs, "10000,1000000" */
    int64_t requests;  /* of each kind, size and round */
    int64_t rounds;

    const char *database; /* a SQLite file */
    int64_t group;        /* runs per transaction */

    const char *gateway; /* program to start */
    const char *data;    /* its data directory */
    int64_t tags;

    struct sockaddr_in address; /* of url */
    char host[64];              /* for the Host header */
};

/* Fills options from the environment and the command's arguments. Ends the program if there
 * is nothing to run: prints the help, or an error about a wrong option. */
void options_read(struct options *options, enum command command, int argc, char **argv);

static inline bool options_has_peer(const struct options *options)
{
    return options->peer && options->peer[0];
}

/* Prints the help text of one command. */
void options_print(enum command command);
