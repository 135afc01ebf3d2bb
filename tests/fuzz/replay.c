/* replay - runs a fuzz target over a corpus, as a normal test.
 *
 *   replay_NOUN [--judge-time] FOLDER…        through a link of the target's name
 *   replay NOUN [--judge-time] FOLDER…        by the program's own name
 *
 * The target gets every file below the given folders, in the order of their names. When it
 * crashes, the last line of stderr is the name of its input.
 *
 * With --judge-time, an input fails if it keeps the thread for too long without checking
 * for time left, or if it costs too much in total. Both are compared with a yardstick, a
 * JSON document that the library parses just before and just after: a slow or busy machine
 * slows down the yardstick too. An input has five tries. Use this with builds without
 * sanitizers, because sanitizers make the code many times slower. */
#include <assert.h>
#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/judge.h"
#include "tests/fuzz/replay.h"

enum {
    INPUT_MAX = 1 << 20,
    JUDGED_MAX = 64 * 1024,   /* longer bodies arrive in pieces of this size */
    YARDSTICK_OBJECTS = 2000, /* about 0.6 ms on a machine of 2024 */
    STRETCH_MAX = 9,          /* yardsticks */
    WHOLE_MAX = 400,          /* yardsticks for all rounds of an input */
    TRIES = 5,
};

struct replay {
    fuzz_input_fn *run;
    bool judges_time;
    int replayed, failed;
};

/* Cost in yardsticks. */
struct cost {
    double stretch, whole;
};

/* Parses a document of many small objects and returns the nanoseconds of CPU time. Most
 * inputs need much the same work: scanning, allocating and freeing. */
static double yardstick_ns(void)
{
    static char text[YARDSTICK_OBJECTS * 16 + 2];
    if (!text[0]) {
        char *end = stpcpy(text, "[");
        for (int i = 0; i < YARDSTICK_OBJECTS; i++)
            end += snprintf(end, 16, "%s{\"n\":%d}", i ? "," : "", 1000 + i);
        stpcpy(end, "]");
    }
    judge_begin();
    json_t *document = json_loads(text, 0, NULL);
    assert(json_array_size(document) == YARDSTICK_OBJECTS);
    json_decref(document);
    return (double)judge_end().whole_ns;
}

static struct cost try_once(fuzz_input_fn *run, const uint8_t *input, size_t size)
{
    double before_ns = yardstick_ns();
    judge_begin();
    run(input, size);
    struct judgement judgement = judge_end();
    double yard_ns = (before_ns + yardstick_ns()) / 2;
    return (struct cost){ (double)judgement.longest_ns / yard_ns,
                          (double)judgement.whole_ns / yard_ns };
}

static bool is_quick(struct cost cost)
{
    return cost.stretch <= STRETCH_MAX && cost.whole <= WHOLE_MAX;
}

static struct cost try_best(fuzz_input_fn *run, const uint8_t *input, size_t size)
{
    struct cost best = try_once(run, input, size);
    for (int i = 1; i < TRIES && !is_quick(best); i++) {
        struct cost again = try_once(run, input, size);
        if (again.stretch < best.stretch)
            best.stretch = again.stretch;
        if (again.whole < best.whole)
            best.whole = again.whole;
    }
    return best;
}

/* Copies the input into an allocation of its own size: sanitizers then see overruns. */
static void replay_file(struct replay *replay, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return;
    static uint8_t bytes[INPUT_MAX];
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);

    uint8_t *input = malloc(size + !size);
    if (!input)
        return;
    memcpy(input, bytes, size);
    fprintf(stderr, "# %s\n", path);
    replay->replayed++;
    if (!replay->judges_time || size > JUDGED_MAX) {
        replay->run(input, size);
    } else {
        struct cost cost = try_best(replay->run, input, size);
        if (!is_quick(cost)) {
            printf("not ok - %s: %.1f yardsticks of CPU without a question for time left "
                   "(%d), %.0f in all (%d)\n",
                   path, cost.stretch, STRETCH_MAX, cost.whole, WHOLE_MAX);
            replay->failed++;
        }
    }
    free(input);
}

static void replay_folder(struct replay *replay, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            replay_file(replay, path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static fuzz_input_fn *find(const char *noun)
{
    const struct fuzz_target *target = fuzz_targets;
    while (target->noun && strcmp(target->noun, noun) != 0)
        target++;
    return target->run;
}

/* Returns the target that the program's name or else the first argument names, and moves
 * arguments to those after it; NULL if neither names one. */
static fuzz_input_fn *choose(char ***arguments)
{
    const char *slash = strrchr(**arguments, '/');
    const char *name = slash ? slash + 1 : **arguments;
    ++*arguments;
    if (strncmp(name, "replay_", 7) == 0)
        return find(name + 7);
    return **arguments ? find(*(*arguments)++) : NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    fuzz_input_fn *run = choose(&argv);
    bool judges_time = run && *argv && strcmp(*argv, "--judge-time") == 0;
    argv += judges_time;
    if (!run || !*argv) {
        fprintf(stderr, "usage: replay NOUN [--judge-time] FOLDER…\n");
        return 2;
    }
    bool failed = false;
    for (; *argv; argv++) {
        struct replay replay = { .run = run, .judges_time = judges_time };
        replay_folder(&replay, *argv);
        if (replay.replayed == 0)
            printf("not ok - replay %s: no inputs\n", *argv);
        else if (!replay.failed)
            printf("ok - %s %s: %d inputs\n", judges_time ? "judge" : "replay", *argv,
                   replay.replayed);
        failed |= replay.failed || !replay.replayed;
    }
    return failed;
}
