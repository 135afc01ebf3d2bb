/* unpacker.c - confines itself, reads the archive, and writes the response. */
#include "supervisor/versions/unpacker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "os/process/sandbox.h"
#include "os/process/sanitized.h"
#include "supervisor/versions/unpack_answer.h"

enum {
    NAME_MEMORY = BUNDLE_NAME_MAX + 256, /* bytes per name, with its slot in a table */
    NUMBERS = 4
};

static const char *const extents[] = { [UNPACK_FIRST] = "first", [UNPACK_ALL] = "all" };

/* ---- the order ---- */

uint64_t unpack_memory(const struct bundle_limits *limits)
{
    return UNPACK_MEMORY_BASE + (uint64_t)limits->files_max * NAME_MEMORY;
}

void unpack_order_write(const struct unpack_order *order, char out[UNPACK_ORDER_MAX])
{
    snprintf(out, UNPACK_ORDER_MAX, "%s %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu64,
             extents[order->extent], order->limits.files_max, order->limits.unpacked_max,
             order->limits.ratio_max, order->memory);
}

static bool read_order(const char *text, struct unpack_order *order)
{
    struct slice rest = slice_of(text), word;
    uint64_t numbers[NUMBERS];
    slice_split(&rest, ' ', &word);
    order->extent = slice_is(word, extents[UNPACK_ALL]) ? UNPACK_ALL : UNPACK_FIRST;
    if (!slice_is(word, extents[order->extent]))
        return false;
    for (int i = 0; i < NUMBERS; i++)
        if (!slice_split(&rest, ' ', &word) || text_to_u64(word, &numbers[i]))
            return false;
    order->limits = (struct bundle_limits){ .files_max = (uint32_t)numbers[0],
                                            .unpacked_max = numbers[1],
                                            .ratio_max = (uint32_t)numbers[2] };
    order->memory = numbers[3];
    return !rest.ptr;
}

static bool has_archive(void)
{
    struct stat found;
    return fstat(STDIN_FILENO, &found) == 0 && S_ISREG(found.st_mode);
}

/* ---- confinement ---- */

/* Limits the memory to the program's current use plus bytes: the base differs by machine.
 *
 * A sanitizer's allocator hangs without memory, so it has no limit. */
static enum err limit_memory(uint64_t bytes, struct failure *why)
{
    uint64_t pages = 0;
    if (PROCESS_IS_SANITIZED)
        return OK;
    FILE *sizes = fopen("/proc/self/statm", "re");
    bool known = sizes && fscanf(sizes, "%" SCNu64, &pages) == 1;
    if (sizes)
        fclose(sizes);
    bytes += pages * (uint64_t)sysconf(_SC_PAGESIZE);
    struct rlimit limit = { bytes, bytes };
    if (known && setrlimit(RLIMIT_AS, &limit) == 0)
        return OK;
    return explain(why, ERR_INTERNAL,
                   "cannot limit the memory for unpacking the archive: %s",
                   strerror(errno));
}

static enum err confine(const struct unpack_order *order, struct failure *why)
{
    static const struct sandbox_path folder = { ".", SANDBOX_CHANGE };
    const struct sandbox_options options = { .paths = &folder, .path_count = 1 };
    struct sandbox sandbox;
    enum err refused = limit_memory(order->memory, why);
    prctl(PR_SET_DUMPABLE, 0); /* runs of the same user cannot trace it */
    return refused ? refused : sandbox_begin(&options, &sandbox, why);
}

/* ---- the archive ---- */

static enum err answer_with(struct bundle *bundle, enum unpack_file file,
                            struct failure *why)
{
    const struct unpack_file_kind *kind = &unpack_file_kinds[file];
    struct buf text = { 0 };
    enum err refused =
        bundle_read_file(bundle, slice_of(kind->name), kind->max, &text, why);
    if (!refused && !unpack_answer_write_file(STDOUT_FILENO, file, buf_slice(&text)))
        refused =
            explain(why, ERR_INTERNAL, "cannot send the response: %s", strerror(errno));
    buf_finish(&text);
    return refused == ERR_NOT_FOUND ? OK : refused;
}

static enum err unpack(struct bundle *bundle, const char *const *names, int folder,
                       struct failure *why)
{
    struct bundle_target target = { .folder = folder, .names = names };
    return bundle_extract(bundle, &target, why);
}

static enum err unpack_first(struct bundle *bundle, int folder, struct failure *why)
{
    static const char *const first[] = { "package.json", "build.json", NULL };
    enum err refused = bundle_check(bundle, NULL, why);
    for (int i = 0; !refused && i < UNPACK_FILES; i++)
        refused = answer_with(bundle, (enum unpack_file)i, why);
    return refused ? refused : unpack(bundle, first, folder, why);
}

static enum err follow(const struct unpack_order *order, struct failure *why)
{
    struct bundle *bundle;
    int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return explain(why, ERR_INTERNAL, "cannot open the folder of the version: %s",
                       strerror(errno));
    enum err refused = confine(order, why);
    if (!refused)
        refused = bundle_open_fd(STDIN_FILENO, &order->limits, &bundle, why);
    if (refused)
        return refused;
    return order->extent == UNPACK_ALL ? unpack(bundle, NULL, folder, why)
                                       : unpack_first(bundle, folder, why);
}

/* Closes and frees nothing, because the process exits. It skips the leak check of a
 * sanitizer, which would have to trace this process. */
int unpacker_run(const char *text)
{
    struct unpack_order order;
    struct failure why = { 0 };
    if (!read_order(text, &order) || !has_archive()) {
        fprintf(stderr, "runcast: " UNPACKER_ROLE " is for runcast itself\n");
        return 2;
    }
    enum err refused = follow(&order, &why);
    _exit(unpack_answer_write_end(STDOUT_FILENO, refused, &why) ? 0 : 1);
}
