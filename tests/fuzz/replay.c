/* replay - runs a fuzz target over a corpus, as a normal test.
 *
 * A fuzz target linked with this file instead of libFuzzer gets every file below the given
 * folders, in name order. The name of the input is printed before it runs when the target
 * crashes on it: that is the last line of stderr. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20 };

/* The input has an allocation of its own size, so that a sanitizer sees an overrun. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    static uint8_t bytes[INPUT_MAX];
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);

    uint8_t *input = malloc(size + !size);
    if (!input)
        return 0;
    memcpy(input, bytes, size);
    fprintf(stderr, "# %s\n", path);
    LLVMFuzzerTestOneInput(input, size);
    free(input);
    return 1;
}

static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    int replayed = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            replayed += replay_file(path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return replayed;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;
    for (int i = 1; i < argc; i++) {
        int replayed = replay_folder(argv[i]);
        if (replayed == 0) {
            printf("not ok - replay %s: no inputs\n", argv[i]);
            failed = 1;
        } else {
            printf("ok - replay %s: %d inputs\n", argv[i], replayed);
        }
    }
    return failed;
}
