/* options.h - the options of all subcommands, one table row each.
 *
 * The names of the environment variables are those of the SDKs, so a shell that can run a
 * worker can run the bench. */
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
    int64_t pid; /* of the server; 0: its CPU and memory are not measured */
    bool json;
    const char *ca; /* of a server with https: beside the system's; "": none */
    bool insecure;  /* its certificate is not verified */
    bool secure;    /* the URL is one of https */

    int64_t subscribers;
    const char *topic;     /* tag, run, batch or all */
    const char *transport; /* ws, longpoll or sse */
    const char *encoding;  /* of ws: json or msgpack */
    const char *by;        /* metadata: PUT …/metadata; batch: a batch of new runs */
    double rate;           /* changes a second */
    int64_t burst;         /* changes at one instant */
    int64_t ahead;         /* changes on their way at most; 0: as many as there are */
    int64_t runs;
    bool interleave; /* every second burst changes runs that nobody hears of */
    double seconds;
    int64_t pad;         /* bytes of a text in the metadata of each change */
    bool floor;          /* the server is runcast-floor */
    const char *peer;    /* the server is this one (peer.h); "" or NULL: it is none */
    int64_t frame_bytes; /* of the floor's and a peer's messages */

    const char *project; /* its ref */
    int64_t workers;     /* that hold a poll */

    int64_t concurrency;
    int64_t count; /* stop after so many; 0: after seconds */
    int64_t payload_bytes;
    bool quotes;   /* payloads of quotes, which are escaped */
    int64_t batch; /* items of a batch; 0: single triggers */
    const char *delay;
    const char *sizes; /* of the table of runs, "10000,1000000" */
    int64_t requests;  /* of each kind, size and round */
    int64_t rounds;

    const char *database; /* a file of SQLite's */
    int64_t group;        /* runs of a transaction */

    const char *gateway; /* the program that is started */
    const char *data;    /* its directory */
    int64_t tags;

    struct sockaddr_in address; /* of url */
    char host[64];              /* for the Host header */
};

/* Fills options from the environment and the arguments of the command; prints the help or
 * a sentence about a wrong option and ends the program where there is nothing to run. */
void options_read(struct options *options, enum command command, int argc, char **argv);

static inline bool options_has_peer(const struct options *options)
{
    return options->peer && options->peer[0];
}

/* The help text of one command. */
void options_print(enum command command);
