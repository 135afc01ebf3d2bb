/* data_files.c - opens, creates and syncs the folders of a data directory. */
#include "server/backup/data_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files/folder.h"

void data_files_init(struct data_files *files)
{
    *files = (struct data_files){ .top = -1, .deployments = -1 };
}

void data_files_close(struct data_files *files)
{
    if (files->top >= 0)
        close(files->top);
    if (files->deployments >= 0)
        close(files->deployments);
    data_files_init(files);
}

bool data_files_open(struct data_files *files, const char *path)
{
    files->top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files->top < 0)
        return false;
    files->deployments = folder_open(files->top, DATA_DEPLOYMENTS);
    return files->deployments >= 0 || errno == ENOENT;
}

bool data_files_begin(struct data_files *files, int above, const char *name)
{
    files->top = folder_open(above, name);
    if (files->top < 0 || mkdirat(files->top, DATA_DEPLOYMENTS, 0700))
        return false;
    files->deployments = folder_open(files->top, DATA_DEPLOYMENTS);
    return files->deployments >= 0;
}

const char *data_files_place(const struct data_files *files, const char *name, int *folder)
{
    const char *slash = strchr(name, '/');
    *folder = slash ? files->deployments : files->top;
    return slash ? slash + 1 : name;
}

bool data_files_sync(const struct data_files *files)
{
    return folder_sync(files->deployments) && folder_sync(files->top);
}
