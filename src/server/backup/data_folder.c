/* data_folder.c - what is done with whole folders, by descriptors. */
#include "server/backup/data_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

int data_folder_open(int above, const char *name)
{
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* A stream of its own: it is closed with it. */
static DIR *list(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);
    if (!names && fd >= 0)
        close(fd);
    return names;
}

bool data_folder_is_empty(int folder)
{
    DIR *names = list(folder);
    bool empty = names != NULL;
    for (const struct dirent *entry; empty && (entry = readdir(names));)
        empty = !is_entry(entry);
    if (names)
        closedir(names);
    return empty;
}

bool data_folder_sync(int folder)
{
    return fsync(folder) == 0;
}

static void remove_files(int folder)
{
    DIR *names = list(folder);
    for (const struct dirent *entry; names && (entry = readdir(names));)
        if (is_entry(entry))
            unlinkat(folder, entry->d_name, 0);
    if (names)
        closedir(names);
}

static void remove_inner(int folder, const char *name)
{
    int inner = data_folder_open(folder, name);
    if (inner < 0)
        return;
    remove_files(inner);
    close(inner);
    unlinkat(folder, name, AT_REMOVEDIR);
}

void data_folder_remove(int above, const char *name)
{
    int folder = data_folder_open(above, name);
    DIR *names = folder < 0 ? NULL : list(folder);
    for (const struct dirent *entry; names && (entry = readdir(names));)
        if (is_entry(entry) && unlinkat(folder, entry->d_name, 0))
            remove_inner(folder, entry->d_name);
    if (names)
        closedir(names);
    if (folder >= 0)
        close(folder);
    unlinkat(above, name, AT_REMOVEDIR);
}

void data_folder_split(const char *path, char **above, char **name)
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
