/* replay - runs a fuzz target over a corpus, as a normal test.
 *
 *   replay_NOUN [--judge-time] FOLDER…
 *
 * A fuzz target linked with this file instead of libFuzzer gets every file below the given
 * folders, in name order. The name of the input is printed before it runs when the target
 * crashes on it: that is the last line of stderr.
 *
 * With --judge-time an input fails that keeps the thread for too long without a question
 * for time left, or that costs too much in all. It has three tries: a machine may be busy.
 * Meant for builds without sanitizers, which take many times as long. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    INPUT_MAX = 1 << 20,
    JUDGED_MAX = 64 * 1024, /* longer bodies come in pieces of this size */
    STRETCH_MAX_NS = 5000000,
    WHOLE_MAX_NS = 200000000, /* of all rounds that a target makes with its input */
    TRIES = 3,
};

struct replay {
    bool judges_time;
    int replayed, failed;
};

static struct judgement run(const uint8_t *input, size_t size)
{
    judge_begin();
    LLVMFuzzerTestOneInput(input, size);
    return judge_end();
}

static bool is_quick(struct judgement judgement)
{
    return judgement.longest_ns <= STRETCH_MAX_NS && judgement.whole_ns <= WHOLE_MAX_NS;
}

static struct judgement run_best(const uint8_t *input, size_t size)
{
    struct judgement best = run(input, size);
    for (int i = 1; i < TRIES && !is_quick(best); i++) {
        struct judgement again = run(input, size);
        if (again.longest_ns < best.longest_ns)
            best.longest_ns = again.longest_ns;
        if (again.whole_ns < best.whole_ns)
            best.whole_ns = again.whole_ns;
    }
    return best;
}

/* The input has an allocation of its own size, so that a sanitizer sees an overrun. */
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
        LLVMFuzzerTestOneInput(input, size);
    } else {
        struct judgement judgement = run_best(input, size);
        if (!is_quick(judgement)) {
            printf("not ok - %s: %.1f ms of CPU without a question for time left, %.0f in "
                   "all\n",
                   path, (double)judgement.longest_ns / 1e6,
                   (double)judgement.whole_ns / 1e6);
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

int main(int argc, char **argv)
{
    bool judges_time = argc > 1 && strcmp(argv[1], "--judge-time") == 0;
    int first = judges_time ? 2 : 1;
    bool failed = argc <= first;
    for (int i = first; i < argc; i++) {
        struct replay replay = { .judges_time = judges_time };
        replay_folder(&replay, argv[i]);
        if (replay.replayed == 0)
            printf("not ok - replay %s: no inputs\n", argv[i]);
        else if (!replay.failed)
            printf("ok - %s %s: %d inputs\n", judges_time ? "judge" : "replay", argv[i],
                   replay.replayed);
        failed |= replay.failed || !replay.replayed;
    }
    return failed;
}
