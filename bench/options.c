/* options.c - the options of all subcommands, one table row each. */
#include "options.h"

#include <inttypes.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "poller.h"

enum {
    MADE_UP_BYTES = 160,
    REAL_MAX = 10000000, /* of seconds, or of anything per second */
};

enum option_type { TEXT, NUMBER, REAL, FLAG };

enum {
    FANOUT = COMMAND_FANOUT,
    TRIGGER = COMMAND_TRIGGER,
    SNAPSHOT = COMMAND_SNAPSHOT,
    SCALE = COMMAND_SCALE,
    DEQUEUE = COMMAND_DEQUEUE,
    UPGRADE = COMMAND_UPGRADE,
    RETRIEVE = COMMAND_RETRIEVE,
    BARE = COMMAND_BARE,
    LOAD = FANOUT | TRIGGER | RETRIEVE | SNAPSHOT | SCALE | DEQUEUE,
    EVERY = LOAD | UPGRADE,
};

struct option_row {
    const char *name;
    enum option_type type;
    int commands;
    size_t place;
    const char *start; /* default */
    const char *help;
};

#define AT(field) offsetof(struct options, field)

static const struct option_row rows[] = {
    { "--url", TEXT, EVERY, AT(url), "http://127.0.0.1:3030",
      "the server; or TRIGGER_API_URL" },
    { "--key", TEXT, EVERY, AT(key), "", "a secret key; or TRIGGER_SECRET_KEY" },
    { "--ca", TEXT, LOAD, AT(ca), "",
      "with https: certificates in PEM that are trusted, too" },
    { "--insecure", FLAG, LOAD, AT(insecure), "0", "with https: trust any certificate" },
    { "--pid", NUMBER, LOAD, AT(pid), "0",
      "the server's process: measure its CPU and memory" },
    { "--json", FLAG, EVERY | BARE, AT(json), "0", "one JSON object instead of the table" },
    { "--subscribers", NUMBER, FANOUT, AT(subscribers), "1000",
      "connections, at most 19000" },
    { "--topic", TEXT, FANOUT, AT(topic), "tag",
      "what they subscribe to: tag, run, batch, all" },
    { "--transport", TEXT, FANOUT | SNAPSHOT, AT(transport), "ws",
      "how they listen: ws, longpoll, sse" },
    { "--encoding", TEXT, FANOUT | SNAPSHOT, AT(encoding), "json", "of ws: json, msgpack" },
    { "--by", TEXT, FANOUT, AT(by), "metadata",
      "a change is: metadata (PUT), batch (new runs)" },
    { "--rate", REAL, FANOUT, AT(rate), "50",
      "changes a second; 0: only connect and hold" },
    { "--burst", NUMBER, FANOUT, AT(burst), "1", "changes at one instant" },
    { "--ahead", NUMBER, FANOUT, AT(ahead), "0",
      "so many changes are on their way at most, the next waits, however long all take; "
      "0: it does not" },
    { "--runs", NUMBER, FANOUT, AT(runs), "0",
      "runs that change in turn; 0: as many as --burst" },
    { "--interleave", FLAG, FANOUT, AT(interleave), "0",
      "every second burst, half of --rate, changes runs that nobody hears of: a change by "
      "itself is measured so, and not before" },
    { "--pad", NUMBER, FANOUT, AT(pad), "0",
      "bytes of a text in the metadata of each change" },
    { "--floor", FLAG, FANOUT | RETRIEVE, AT(floor), "0", "the server is runcast-floor" },
    { "--peer", TEXT, FANOUT, AT(peer), "",
      "the server is another one: nchan, nats, mosquitto, socket.io, ws" },
    { "--frame-bytes", NUMBER, FANOUT, AT(frame_bytes), "0",
      "payload of the floor's and a peer's messages, at least 104; 0: 160" },
    { "--runs", NUMBER, SNAPSHOT, AT(runs), "100000", "runs in the snapshot" },
    { "--sizes", TEXT, SCALE, AT(sizes), "10000,100000",
      "runs in the table when measuring" },
    { "--requests", NUMBER, SCALE, AT(requests), "2000",
      "requests of each kind at each size, in each round" },
    { "--rounds", NUMBER, SCALE, AT(rounds), "5",
      "rounds; that with the median p99 counts" },
    { "--concurrency", NUMBER, TRIGGER | RETRIEVE, AT(concurrency), "64",
      "keep-alive connections" },
    { "--concurrency", NUMBER, SCALE, AT(concurrency), "4", "keep-alive connections" },
    { "--count", NUMBER, TRIGGER, AT(count), "0", "runs to trigger; 0: --seconds decides" },
    { "--batch", NUMBER, TRIGGER, AT(batch), "0", "trigger batches of so many items" },
    { "--payload", NUMBER, TRIGGER, AT(payload_bytes), "1024", "bytes of each payload" },
    { "--quotes", FLAG, TRIGGER, AT(quotes), "0",
      "payloads of quotes, all of which are escaped" },
    { "--payload", NUMBER, SNAPSHOT | SCALE, AT(payload_bytes), "16",
      "bytes of each payload" },
    { "--delay", TEXT, TRIGGER, AT(delay), "", "trigger runs with this delay (\"1h\")" },
    { "--project", TEXT, DEQUEUE, AT(project), "",
      "ref of the key's project; or TRIGGER_PROJECT_REF" },
    { "--workers", NUMBER, DEQUEUE, AT(workers), "8", "workers that hold a poll" },
    { "--rate", REAL, DEQUEUE, AT(rate), "50", "triggers a second" },
    { "--gateway", TEXT, UPGRADE, AT(gateway), "", "the program that is started" },
    { "--data", TEXT, UPGRADE, AT(data), "", "its data directory" },
    { "--clients", NUMBER, UPGRADE, AT(subscribers), "10000",
      "connections: 6 of 10 WebSockets, 2 long polls, 2 event streams" },
    { "--tags", NUMBER, UPGRADE, AT(tags), "100", "that they listen to, one each" },
    { "--rate", REAL, UPGRADE, AT(rate), "50", "changes a second, one request each" },
    { "--runs", NUMBER, UPGRADE, AT(runs), "10000", "more runs, which nobody listens to" },
    { "--database", TEXT, BARE, AT(database), "",
      "of a gateway that does not run and has triggered runs: it is written to" },
    { "--group", NUMBER, BARE, AT(group), "0", "runs of a transaction; 0: 32" },
    { "--rate", REAL, BARE, AT(rate), "0",
      "instead: changes of the newest run a second, one a transaction; 0: none" },
    { "--seconds", REAL, FANOUT | TRIGGER | RETRIEVE | DEQUEUE | BARE, AT(seconds), "10",
      "how long to measure" },
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static void set_option(struct options *options, const struct option_row *row,
                       const char *text)
{
    char *place = (char *)options + row->place;
    char *end = NULL;
    switch (row->type) {
    case TEXT: *(const char **)place = text; return;
    case FLAG: *(bool *)place = text[0] == '1'; return;
    case NUMBER:
        if (text_to_i64(slice_of(text), (int64_t *)place) != OK)
            fatal("%s: '%s' is not a whole number", row->name, text);
        return;
    case REAL:
        *(double *)place = strtod(text, &end);
        if (end == text || *end || !(*(double *)place >= 0 && *(double *)place <= REAL_MAX))
            fatal("%s: '%s' is no number from 0 to %d", row->name, text, REAL_MAX);
        return;
    }
}

void options_print(enum command command)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (!(rows[i].commands & (int)command))
            continue;
        const char *value = rows[i].type == FLAG ? "" : rows[i].type == TEXT ? "TEXT" : "N";
        printf("  %-15s %-5s %s", rows[i].name, value, rows[i].help);
        if (rows[i].type != FLAG && rows[i].start[0])
            printf(" (%s)", rows[i].start);
        putchar('\n');
    }
}

static const struct option_row *find_row(enum command command, const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if ((rows[i].commands & (int)command) && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static void resolve_url(struct options *options)
{
    struct slice rest = slice_of(options->url);
    options->secure = slice_starts(rest, "https://");
    if (!options->secure && !slice_starts(rest, "http://"))
        fatal("--url: '%s' does not start with http:// or https://", options->url);
    rest = slice_from(rest, strlen(options->secure ? "https://" : "http://"));
    struct slice authority, name, port = options->secure ? SLICE("443") : SLICE("80");
    slice_split(&rest, '/', &authority);
    snprintf(options->host, sizeof(options->host), "%.*s", SLICE_ARG(authority));
    slice_split(&authority, ':', &name);
    if (authority.ptr)
        port = authority;

    char name_text[64], port_text[8];
    snprintf(name_text, sizeof(name_text), "%.*s", SLICE_ARG(name));
    snprintf(port_text, sizeof(port_text), "%.*s", SLICE_ARG(port));
    struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(name_text, port_text, &hints, &found);
    if (failed)
        fatal("--url: cannot find '%s': %s", options->host, gai_strerror(failed));
    memcpy(&options->address, found->ai_addr, sizeof(options->address));
    freeaddrinfo(found);
}

void options_read(struct options *options, enum command command, int argc, char **argv)
{
    *options = (struct options){ .url = NULL };
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].commands & (int)command)
            set_option(options, &rows[i], rows[i].start);
    }
    if (getenv("TRIGGER_API_URL"))
        options->url = getenv("TRIGGER_API_URL");
    if (getenv("TRIGGER_SECRET_KEY"))
        options->key = getenv("TRIGGER_SECRET_KEY");
    if (getenv("TRIGGER_PROJECT_REF"))
        options->project = getenv("TRIGGER_PROJECT_REF");

    for (int i = 0; i < argc; i++) {
        const struct option_row *row = find_row(command, argv[i]);
        if (!row)
            fatal("unknown option '%s'; see runcast-bench --help", argv[i]);
        if (row->type != FLAG && i + 1 == argc)
            fatal("%s needs a value", argv[i]);
        set_option(options, row, row->type == FLAG ? "1" : argv[++i]);
    }
    if (options->pid < 0)
        fatal("--pid: %" PRId64 " is no process", options->pid);
    if (!options->frame_bytes && (options->floor || options_has_peer(options)))
        options->frame_bytes = MADE_UP_BYTES;
    if (command != COMMAND_BARE)
        resolve_url(options);
    if ((command & EVERY) && !options->floor && !options_has_peer(options) &&
        !*options->key)
        fatal("a secret key is needed: --key or TRIGGER_SECRET_KEY");
}
