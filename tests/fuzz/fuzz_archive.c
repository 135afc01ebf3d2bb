/* fuzz_archive - any bytes as the archive of a version.
 *
 * Bytes that are not gzip are compressed first, so that tar is reached too. Whatever the
 * archive contains, nothing is written outside of the folder or beyond the limits, and the
 * reader holds at most HEAP_MAX bytes at a time. An archive that passes the check is
 * extracted, twice, and leaves only files and folders, with their two modes. No client
 * waits for it: it is read in its own thread, and time (judge.h) is not judged. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/judge.h"
#include "tests/support/world/heap_meter.h"
#include "tests/support/world/tar_maker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct bundle_limits limits = { .files_max = 50,
                                             .unpacked_max = 1 << 20,
                                             .ratio_max = 200 };

enum { HEAP_MAX = 1 << 20 }; /* the buffers of a pass take 200 KiB, 50 file names as much */

static uint32_t files, folders;
static uint64_t bytes;
static bool complete; /* false: the last file is partial, and has mode 0600 */

static int on_found(const char *path, const struct stat *found, int flag, struct FTW *walk)
{
    (void)path;
    assert(flag == FTW_F || flag == FTW_D);
    if (walk->level == 0)
        return 0;
    mode_t mode = found->st_mode & 07777;
    assert(mode == 0644 || mode == 0755 || (mode == 0600 && !complete));
    files += flag == FTW_F;
    folders += flag == FTW_D;
    bytes += flag == FTW_F ? (uint64_t)found->st_size : 0;
    return 0;
}

static int on_removed(const char *path, const struct stat *found, int flag,
                      struct FTW *walk)
{
    (void)found;
    (void)flag;
    (void)walk;
    return remove(path);
}

/* Extracts into a nested folder: files that escape are found in the outer one. */
static void extract(struct bundle *bundle, enum err checked,
                    const struct bundle_content *content)
{
    char outer[] = "/tmp/runcast-fuzz-XXXXXX", inner[64];
    struct failure why = { 0 };
    if (!mkdtemp(outer))
        abort();
    snprintf(inner, sizeof(inner), "%s/inner", outer);
    int made = mkdir(inner, 0700);
    assert(made == 0);
    int folder = open(inner, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct bundle_target target = { .folder = folder };
    for (int i = 0; i < 2; i++) {
        enum err err = bundle_extract(bundle, &target, &why);
        assert(err == checked);
        files = folders = 0;
        bytes = 0;
        complete = !err;
        nftw(inner, on_found, 8, FTW_PHYS);
        assert(files + folders <= limits.files_max && bytes <= limits.unpacked_max);
        if (!err)
            assert(files == content->files && folders == content->folders &&
                   bytes == content->unpacked);
    }
    close(folder);
    nftw(inner, on_removed, 8, FTW_DEPTH | FTW_PHYS);
    int removed = rmdir(outer);
    assert(removed == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    judge_pause();
    struct slice input = { (const char *)data, size };
    struct buf packed = { 0 }, text = { 0 };
    struct bundle_content content = { 0 };
    struct failure why = { 0 };
    if (size > 1 && data[0] == 0x1f && data[1] == 0x8b)
        buf_add(&packed, input);
    else
        tar_gzip(input, &packed);
    struct bundle *bundle = tar_open(buf_slice(&packed), &limits);
    heap_meter_begin();
    enum err checked = bundle_check(bundle, &content, &why);
    assert(!checked || why.text[0]);
    enum err read = bundle_read_file(bundle, SLICE("package.json"), 1000, &text, &why);
    assert(text.len <= 1000 && (!read || !text.len));
    extract(bundle, checked, &content);
    assert(heap_meter_peak() <= HEAP_MAX);
    bundle_close(bundle);
    buf_finish(&packed);
    buf_finish(&text);
    judge_resume();
    return 0;
}
