/* main.c - runcast-bench: a load generator.
 *
 * It drives the gateway through the public API only, like any user; bench/README.md
 * explains the figures and how to compare them. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "commands.h"

static const struct {
    const char *name;
    enum command command;
    int (*main)(const struct options *options);
    const char *help;
} commands[] = {
    { "fanout", COMMAND_FANOUT, fanout_main,
      "N subscribers, M changes a second: latency, CPU a frame, memory, losses" },
    { "trigger", COMMAND_TRIGGER, trigger_main,
      "durable triggers a second at a concurrency" },
    { "retrieve", COMMAND_RETRIEVE, retrieve_main,
      "retrieves of a run a second at a concurrency" },
    { "dequeue", COMMAND_DEQUEUE, dequeue_main,
      "from a trigger to the worker that holds a poll" },
    { "snapshot", COMMAND_SNAPSHOT, snapshot_main,
      "one subscriber joins a topic of many runs" },
    { "scale", COMMAND_SCALE, scale_main,
      "memory of a run, and latencies as the table grows; fills the server" },
    { "upgrade", COMMAND_UPGRADE, upgrade_main,
      "starts a gateway, and starts it anew beneath its clients: who is back when" },
    { "bare", COMMAND_BARE, bare_main,
      "what SQLite writes a second by itself, of the rows of a trigger or a change" },
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static int print_help(void)
{
    puts("usage: runcast-bench COMMAND [options]\n\n"
         "The bench makes runs and leaves them behind: never aim it at a gateway that\n"
         "holds anything you need. With RUNCAST_METRICS_TOKEN, the gateway's, it also\n"
         "reads /metrics: loop turns, and times of the store.");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        printf("\n%s - %s\n", commands[i].name, commands[i].help);
        options_print(commands[i].command);
    }
    return 0;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    }
    return argc > 1 && strcmp(argv[1], "help") == 0;
}

/* Raises the limit of descriptors to the maximum, and makes timers precise. */
static void prepare_process(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    prctl(PR_SET_TIMERSLACK, 1);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
    struct options options;
    if (asks_for_help(argc, argv))
        return print_help();
    for (size_t i = 0; argc > 1 && i < COMMAND_COUNT; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        prepare_process();
        options_read(&options, commands[i].command, argc - 2, argv + 2);
        return commands[i].main(&options);
    }
    if (argc > 1)
        fprintf(stderr, "runcast-bench: unknown command '%s'\n", argv[1]);
    fputs(
        "usage: runcast-bench fanout|trigger|retrieve|dequeue|snapshot|scale|upgrade|bare "
        "[options]; "
        "--help shows them\n",
        stderr);
    return 2;
}
