/* site.c - the lock, the list of children, and the scratch folders.
 *
 * The lock is an fcntl lock: the kernel knows its holder, and releases it when the holder
 * dies. The process must not open the lock file elsewhere: closing it would release the
 * lock. */
#include "supervisor/versions/site.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/work.h"
#include "os/files/folder.h"

enum {
    GONE_LEN = 24,
    LIST_MAX = 1 << 20, /* bytes */
    LIST_NAME_MAX = 64,
    STAT_MAX = 1024,
    START_TIME_FIELD = 22
};

static const char lock_name[] = "supervise.lock", pids_name[] = "supervise.pids";
static const char gone_prefix[] = ".gone-";

struct site_child {
    pid_t pid;
    uint64_t started; /* start time from /proc, which differs if the pid was reused */
};

struct site {
    struct loop *loop;
    char *path, *versions, *runners;
    int folder, lock; /* descriptors */
    struct site_child *children;
    size_t child_count, child_room;
    struct list removals; // removal::link
    bool stopping;
};

/* ---- the lock ---- */

static struct flock whole_file(void)
{
    return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

pid_t site_holder(const char *path)
{
    struct flock lock = whole_file();
    char *name = folder_path(path, lock_name);
    int file = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    free(name);
    if (file < 0)
        return 0;
    bool asked = fcntl(file, F_GETLK, &lock) == 0;
    close(file);
    return asked && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

static enum err take_lock(struct site *site, struct failure *why)
{
    struct flock lock = whole_file();
    site->lock =
        openat(site->folder, lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (site->lock < 0)
        return explain(why, ERR_INVALID, "%s/%s: %s", site->path, lock_name,
                       strerror(errno));
    if (fcntl(site->lock, F_SETLK, &lock) == 0)
        return OK;
    return explain(why, ERR_CONFLICT, "another supervise role uses %s", site->path);
}

/* ---- children ---- */

/* Returns the start time in clock ticks since boot; 0 if there is no such process. */
static uint64_t start_of(pid_t pid)
{
    char path[64], text[STAT_MAX + 1];
    uint64_t started = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = file < 0 ? -1 : read(file, text, STAT_MAX);
    if (file >= 0)
        close(file);
    if (len <= 0)
        return 0;
    text[len] = '\0';
    const char *end = strrchr(text, ')'); /* a name may contain spaces */
    struct slice rest = end ? slice_of(end + 1) : (struct slice){ 0 }, field;
    for (int i = 2; i <= START_TIME_FIELD && slice_split(&rest, ' ', &field); i++)
        if (i == START_TIME_FIELD)
            text_to_u64(field, &started);
    return started;
}

void site_write_list(struct site *site, const char *name, struct slice text)
{
    char temporary[LIST_NAME_MAX];
    snprintf(temporary, sizeof(temporary), "%s.new", name);
    int file = openat(site->folder, temporary,
                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool written = file >= 0 && write(file, text.ptr, text.len) == (ssize_t)text.len;
    if (file >= 0)
        close(file);
    if (!written || renameat(site->folder, temporary, site->folder, name))
        log_warn("cannot write a list file", "folder", site->path, "name", name, NULL);
}

void site_read_list(struct site *site, const char *name, struct buf *out)
{
    int file = openat(site->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat found;
    bool is_file = file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode);
    ssize_t len = is_file ? read(file, buf_reserve(out, LIST_MAX), LIST_MAX) : -1;
    if (file >= 0)
        close(file);
    if (len > 0)
        out->len += (size_t)len;
}

static void write_children(struct site *site)
{
    struct buf text = { 0 };
    for (size_t i = 0; i < site->child_count; i++)
        buf_print(&text, "%d %" PRIu64 "\n", (int)site->children[i].pid,
                  site->children[i].started);
    site_write_list(site, pids_name, buf_slice(&text));
    buf_finish(&text);
}

void site_add_child(struct site *site, pid_t pid)
{
    if (site->child_count == site->child_room) {
        site->child_room = site->child_room ? 2 * site->child_room : 16;
        site->children =
            mem_resize(site->children, site->child_room * sizeof(*site->children));
    }
    site->children[site->child_count++] =
        (struct site_child){ .pid = pid, .started = start_of(pid) };
    write_children(site);
}

void site_drop_child(struct site *site, pid_t pid)
{
    for (size_t i = 0; i < site->child_count; i++)
        if (site->children[i].pid == pid) {
            site->children[i] = site->children[--site->child_count];
            write_children(site);
            return;
        }
}

static void kill_line(struct slice line)
{
    struct slice number;
    uint64_t pid, started;
    slice_split(&line, ' ', &number);
    if (text_to_u64(number, &pid) || pid < 2 || pid > INT32_MAX ||
        text_to_u64(line, &started) || !started || start_of((pid_t)pid) != started)
        return;
    log_warn("killed an orphan of an earlier supervise role", "pid",
             log_number((int64_t)pid), NULL);
    kill(-(pid_t)pid, SIGKILL);
    kill((pid_t)pid, SIGKILL);
}

static void kill_orphans(struct site *site)
{
    struct buf text = { 0 };
    site_read_list(site, pids_name, &text);
    struct slice rest = buf_slice(&text), line;
    while (slice_split(&rest, '\n', &line))
        if (line.len)
            kill_line(line);
    buf_finish(&text);
    unlinkat(site->folder, pids_name, 0);
}

/* ---- scratch ---- */

/* Removes a folder in the background, under another name.
 *
 * Its own name is free for another runner at once. */
struct removal {
    struct work work;
    struct site *site;
    char gone[sizeof(gone_prefix) + GONE_LEN]; /* name in the folder runners */
    bool finished;
    struct list link; // site::removals
};

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void remove_off_loop(struct work *work)
{
    struct removal *op = container_of(work, struct removal, work);
    int runners = open(op->site->runners, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    op->finished = runners < 0 || folder_remove(runners, op->gone, work);
    if (runners >= 0)
        close(runners);
}

/* Continues the removal. Files that are left when the role stops are removed at the next
 * start. */
static void on_removed(struct work *work)
{
    struct removal *op = container_of(work, struct removal, work);
    if (!op->finished && !op->site->stopping) {
        work_begin(loop_uv(op->site->loop), work, WORK_REMOVAL);
        return;
    }
    list_remove(&op->link);
    free(op);
}

void site_remove_scratch(struct site *site, const char *runner)
{
    struct removal *op = mem_new(struct removal);
    char *from = folder_path(site->runners, runner);
    memcpy(op->gone, gone_prefix, sizeof(gone_prefix) - 1);
    text_random(op->gone + sizeof(gone_prefix) - 1, GONE_LEN, "abcdefghijklmnopqrstuvwxyz");
    char *to = folder_path(site->runners, op->gone);
    bool is_there = rename(from, to) == 0;
    free(from);
    free(to);
    if (!is_there) {
        free(op);
        return;
    }
    op->site = site;
    op->work.run = remove_off_loop;
    op->work.done = on_removed;
    list_append(&site->removals, &op->link);
    work_begin(loop_uv(site->loop), &op->work, WORK_REMOVAL);
}

void site_remove_left(struct site *site)
{
    DIR *all = opendir(site->runners);
    for (struct dirent *entry; all && (entry = readdir(all));)
        if (!is_dots(entry->d_name))
            site_remove_scratch(site, entry->d_name);
    if (all)
        closedir(all);
}

enum err site_make_scratch(struct site *site, const char *runner, struct process_user user,
                           char **path, struct failure *why)
{
    char *name = folder_path(site->runners, runner);
    bool made =
        mkdir(name, 0700) == 0 && (!user.uid || lchown(name, user.uid, user.gid) == 0);
    if (made) {
        *path = name;
        return OK;
    }
    explain(why, ERR_STORE, "cannot create %s: %s", name, strerror(errno));
    free(name);
    return why->code;
}

/* ---- the folder ---- */

static enum err make_folder(const char *path, mode_t mode, struct failure *why)
{
    if (mkdir(path, mode) && errno != EEXIST)
        return explain(why, ERR_INVALID, "cannot make the folder %s: %s", path,
                       strerror(errno));
    return OK;
}

/* Rejects a folder in which others can write: they could replace what is executed. */
static enum err check_folder(const struct site *site, struct failure *why)
{
    struct stat found;
    if (fstat(site->folder, &found))
        return explain(why, ERR_INVALID, "%s: %s", site->path, strerror(errno));
    if (found.st_uid != geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)))
        return explain(why, ERR_INVALID,
                       "other users can write to %s, from which versions are executed; "
                       "give it to user %u, with mode 711",
                       site->path, (unsigned)geteuid());
    return OK;
}

/* Versions get their own paths, which must be absolute and without links. */
static enum err name_folders(struct site *site, const char *path, struct failure *why)
{
    char *whole = realpath(path, NULL);
    if (!whole)
        return explain(why, ERR_INVALID, "%s: %s", path, strerror(errno));
    site->path = mem_text(slice_of(whole));
    free(whole);
    site->versions = folder_path(site->path, "versions");
    site->runners = folder_path(site->path, "runners");
    return OK;
}

static enum err open_folder(struct site *site, const char *path, struct failure *why)
{
    mode_t before = umask(0);
    enum err refused = make_folder(path, 0711, why);
    if (!refused)
        refused = name_folders(site, path, why);
    if (!refused)
        refused = make_folder(site->versions, 0711, why);
    if (!refused)
        refused = make_folder(site->runners, 0711, why);
    umask(before);
    if (refused)
        return refused;
    site->folder = open(site->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (site->folder < 0)
        return explain(why, ERR_INVALID, "%s: %s", site->path, strerror(errno));
    refused = check_folder(site, why);
    return refused ? refused : take_lock(site, why);
}

enum err site_open(struct loop *loop, const char *path, struct site **out,
                   struct failure *why)
{
    struct site *site = mem_new(struct site);
    *site = (struct site){ .loop = loop, .folder = -1, .lock = -1 };
    list_init(&site->removals);
    enum err refused = open_folder(site, path, why);
    if (refused) {
        site_close(site);
        return refused;
    }
    kill_orphans(site);
    *out = site;
    return OK;
}

enum err site_check_way(const struct site *site, struct failure *why)
{
    struct stat found;
    char *way = mem_text(slice_of(site->path));
    bool open = true;
    for (char *end; open && (end = strrchr(way, '/')) && end != way;) {
        *end = '\0';
        open = stat(way, &found) == 0 && (found.st_mode & S_IXOTH);
    }
    if (!open)
        explain(why, ERR_INVALID,
                "the users of tasks cannot enter %s, so tasks cannot be executed from %s; "
                "choose another folder, as in --versions /var/lib/runcast-versions",
                way, site->path);
    free(way);
    return open ? OK : ERR_INVALID;
}

void site_stop(struct site *site)
{
    site->stopping = true;
    list_each (link, &site->removals)
        work_stop(&container_of(link, struct removal, link)->work);
}

bool site_is_idle(const struct site *site)
{
    return list_empty(&site->removals);
}

void site_close(struct site *site)
{
    if (!site)
        return;
    if (site->folder >= 0)
        close(site->folder);
    if (site->lock >= 0)
        close(site->lock);
    free(site->children);
    free(site->path);
    free(site->versions);
    free(site->runners);
    free(site);
}

const char *site_path(const struct site *site)
{
    return site->path;
}

const char *site_versions(const struct site *site)
{
    return site->versions;
}
