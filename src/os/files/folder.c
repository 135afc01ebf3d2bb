/* folder.c - opens, lists and removes folders. */
#include "os/files/folder.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"

enum { DEPTH_MAX = 100, MOVED_NAME = 32, ROUNDS_MAX = 10000 };

int folder_open(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

DIR *folder_list(int folder)
{
    int again = folder_open(folder, "."); /* closed with the stream */
    DIR *all = again < 0 ? NULL : fdopendir(again);
    if (!all && again >= 0)
        close(again);
    return all;
}

bool folder_is_empty(int folder)
{
    DIR *all = folder_list(folder);
    bool empty = all != NULL;
    for (const struct dirent *entry; empty && (entry = readdir(all));)
        empty = is_dots(entry->d_name);
    if (all)
        closedir(all);
    return empty;
}

bool folder_sync(int folder)
{
    return fsync(folder) == 0;
}

/* ---- removal ---- */

/* Removal of a folder whose depth an untrusted program chose. A walk goes DEPTH_MAX down
 * and no further: it moves a deeper folder to the top, for the next round. */
struct removing {
    const struct work *work;
    int top;
    unsigned moved; /* number moved to the top in this round */
};

static void remove_entries(struct removing *removing, int folder, unsigned depth);

static void remove_folder(struct removing *removing, int folder, const char *name,
                          unsigned depth)
{
    char moved[MOVED_NAME + 1] = "";
    if (depth == DEPTH_MAX) {
        text_random(moved, MOVED_NAME, "abcdefghijklmnopqrstuvwxyz");
        if (renameat(folder, name, removing->top, moved) == 0)
            removing->moved++;
        return;
    }
    int inner = folder_open(folder, name);
    if (inner < 0)
        return;
    fchmod(inner, 0700); /* its owner may have removed its own write permission */
    remove_entries(removing, inner, depth + 1);
    unlinkat(folder, name, AT_REMOVEDIR);
}

/* Takes ownership of the descriptor. */
static void remove_entries(struct removing *removing, int folder, unsigned depth)
{
    DIR *all = fdopendir(folder);
    if (!all) {
        close(folder);
        return;
    }
    for (struct dirent *entry; work_may_continue(removing->work) && (entry = readdir(all));)
        if (!is_dots(entry->d_name) && unlinkat(dirfd(all), entry->d_name, 0))
            remove_folder(removing, dirfd(all), entry->d_name, depth);
    closedir(all);
}

bool folder_remove(int above, const char *name, const struct work *work)
{
    struct removing removing = { .work = work };
    if (unlinkat(above, name, 0) == 0)
        return true;
    removing.top = folder_open(above, name);
    if (removing.top < 0)
        return true;
    fchmod(removing.top, 0700);
    for (unsigned i = 0;
         work_may_continue(work) && (i == 0 || (removing.moved && i < ROUNDS_MAX)); i++) {
        int again = folder_open(removing.top, ".");
        removing.moved = 0;
        if (again >= 0)
            remove_entries(&removing, again, 1);
    }
    close(removing.top);
    return unlinkat(above, name, AT_REMOVEDIR) == 0 || work_may_continue(work);
}

/* ---- paths ---- */

char *folder_path(const char *folder, const char *name)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", folder, name);
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    return text;
}

void folder_split(const char *path, char **above, char **name)
{
    struct slice whole = slice_of(path);
    while (whole.len > 1 && whole.ptr[whole.len - 1] == '/')
        whole.len--;
    size_t at = whole.len;
    while (at && whole.ptr[at - 1] != '/')
        at--;
    *name = mem_text(slice_from(whole, at));
    *above = mem_text(at ? (struct slice){ whole.ptr, at } : SLICE("."));
}
