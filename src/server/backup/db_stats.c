/* db_stats.c - collects all figures from one snapshot, then prints them as text or JSON. */
#include "server/backup/db_stats.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts/bootstrap.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/slots.h"
#include "base/table.h"
#include "base/text.h"
#include "store/sqlite/snapshot/sqlite_stats.h"

enum {
    ENVIRONMENTS_SHOWN = 20,
    TABLE_NAME_MAX = 64,
    NAME_LIMIT = 120,
    ENVIRONMENTS_MAX = 1 << 24
};

struct stats_table {
    char name[TABLE_NAME_MAX];
    int64_t rows, bytes;
};

struct stats_env {
    struct sqlite_env_stats counts;
    char *name; /* "proj_…/prod"; NULL: no document has it anymore */
};

struct db_stats_all {
    const struct db_stats_options *options;
    struct sqlite_file_stats file;
    struct sqlite_retained_stats retained;
    struct stats_table *tables;
    struct stats_env *envs; /* largest first */
    size_t table_count, env_count;
    int64_t files, file_bytes; /* of deployments */
    struct slots names;        /* texts, by number of the environment */
    struct table *projects;    /* struct stats_project by id */
    const char *epoch;
    int64_t schema;
};

/* ---- names of environments, from documents that are not sealed ---- */

struct stats_project {
    char *id, *ref;
};

static struct slice key_of(const void *value)
{
    return slice_of(((const struct stats_project *)value)->id);
}

static char *text_member(const struct document *document, const char *name)
{
    struct slice body = bytes_slice(document->body);
    struct bytes *text = scan_is_json(body) ? members_text(body, name) : NULL;
    char *copy = text ? mem_text(bytes_slice(text)) : NULL;
    bytes_unref(text);
    return copy;
}

static enum err take_project(void *owner, const struct document *document)
{
    struct db_stats_all *all = owner;
    struct stats_project *project = mem_new(struct stats_project);
    project->id = text_member(document, "id");
    project->ref = text_member(document, "ref");
    if (project->id && project->ref && !table_find(all->projects, key_of(project))) {
        table_insert(all->projects, project);
        return OK;
    }
    free(project->id);
    free(project->ref);
    free(project);
    return OK;
}

static enum err take_environment(void *owner, const struct document *document)
{
    struct db_stats_all *all = owner;
    int64_t number;
    char *type = text_member(document, "type"), *branch = text_member(document, "branch");
    char *id = text_member(document, "project");
    const struct stats_project *project =
        id ? table_find(all->projects, slice_of(id)) : NULL;
    enum environment_type kind;
    if (type && !environment_type_from_slug(slice_of(type), &kind) && project &&
        members_number(bytes_slice(document->body), "number", &number) && number > 0 &&
        number < ENVIRONMENTS_MAX && !slots_get(&all->names, (uint32_t)number)) {
        struct buf name = { 0 };
        buf_print(&name, "%s/%s%s%.*s", project->ref, environment_path_slug(kind),
                  branch ? "/" : "", NAME_LIMIT, branch ? branch : "");
        *slots_at(&all->names, (uint32_t)number) = mem_text(buf_slice(&name));
        buf_finish(&name);
    }
    free(type);
    free(branch);
    free(id);
    return OK;
}

/* ---- collecting ---- */

static void take_table(void *owner, const struct sqlite_table_stats *table)
{
    struct db_stats_all *all = owner;
    size_t size = (all->table_count + 1) * sizeof(*all->tables);
    all->tables = mem_resize(all->tables, size);
    struct stats_table *taken = &all->tables[all->table_count++];
    *taken = (struct stats_table){ .rows = table->rows, .bytes = table->bytes };
    snprintf(taken->name, sizeof(taken->name), "%s", table->name);
}

/* Skips the environment of the installation, which has no runs. */
static void take_env(void *owner, const struct sqlite_env_stats *env)
{
    struct db_stats_all *all = owner;
    if (env->env == ENV_INSTALLATION)
        return;
    all->envs = mem_resize(all->envs, (all->env_count + 1) * sizeof(*all->envs));
    all->envs[all->env_count++] =
        (struct stats_env){ .counts = *env, .name = slots_get(&all->names, env->env) };
}

static int compare_envs(const void *a, const void *b)
{
    int64_t one = ((const struct stats_env *)a)->counts.stored;
    int64_t other = ((const struct stats_env *)b)->counts.stored;
    return (one < other) - (one > other);
}

static void count_files(struct db_stats_all *all)
{
    struct buf path = { 0 };
    struct stat found;
    buf_print(&path, "%s/deployments", all->options->data);
    buf_add_char(&path, '\0');
    DIR *folder = opendir(path.ptr);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (fstatat(dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(found.st_mode))
            continue;
        all->files++;
        all->file_bytes += found.st_size;
    }
    if (folder)
        closedir(folder);
    buf_finish(&path);
}

static enum err ask(struct db_stats_all *all, struct sqlite_look *look, struct failure *why)
{
    int64_t before = all->options->now_ms - all->options->retain_ms;
    enum err err = sqlite_stats_file(look, &all->file, why);
    if (!err)
        err = sqlite_stats_tables(look, take_table, all, why);
    if (!err)
        err = sqlite_look_documents(look, DOC_PROJECT, take_project, all, why);
    if (!err)
        err = sqlite_look_documents(look, DOC_ENVIRONMENT, take_environment, all, why);
    if (!err)
        err = sqlite_stats_environments(look, take_env, all, why);
    if (!err && all->options->retain_ms)
        err = sqlite_stats_retained(look, before, &all->retained, why);
    if (all->env_count)
        qsort(all->envs, all->env_count, sizeof(*all->envs), compare_envs);
    all->epoch = sqlite_look_epoch(look);
    all->schema = sqlite_look_schema(look);
    count_files(all);
    return err;
}

/* ---- as text ---- */

static void add_size(struct buf *out, int64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double size = (double)bytes;
    unsigned unit = 0;
    for (; size >= 1024 && unit < sizeof(units) / sizeof(units[0]) - 1; unit++)
        size /= 1024;
    buf_print(out, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

static void add_line(struct buf *out, const char *name, int64_t bytes, const char *more)
{
    buf_print(out, "%-16s ", name);
    add_size(out, bytes);
    buf_print(out, "%s\n", more);
}

static void add_env(struct buf *out, const struct stats_env *env)
{
    struct run_word_count words[RUN_STATUS_COUNT];
    size_t count = run_count_words(VOCABULARY_B, env->counts.runs, words);
    buf_print(out, "  %s: ", env->name ? env->name : "an environment that has ended");
    add_size(out, env->counts.stored);
    for (size_t i = 0; i < count; i++)
        buf_print(out, ", %" PRIu64 " %s", words[i].count, words[i].word);
    buf_add_char(out, '\n');
}

static void add_retention(struct buf *out, const struct db_stats_all *all)
{
    int64_t days = all->options->retain_ms / (24 * 3600 * 1000);
    char kept[48];
    if (!all->options->retain_ms) {
        buf_add_text(out, "retention        removes nothing (retain 0)\n");
        return;
    }
    if (all->options->retain_ms == days * 24 * 3600 * 1000)
        snprintf(kept, sizeof(kept), "%" PRId64 "d", days);
    else
        text_from_seconds((uint64_t)all->options->retain_ms / 1000, kept);
    buf_print(out, "retention        %" PRId64 " ended runs are older than retain (%s), ",
              all->retained.runs, kept);
    add_size(out, all->retained.bytes);
    buf_add_text(out, ": a running gateway removes them, and reuses their space\n");
}

static void write_text(const struct db_stats_all *all, struct buf *out)
{
    buf_print(out, "%-16s schema %" PRId64 ", epoch %s\n", "database", all->schema,
              all->epoch);
    add_line(out, "  file", all->file.bytes, "");
    add_line(out, "  free in it", all->file.free_bytes, ", reused by new rows");
    add_line(out, "  log", all->file.log_bytes, "");
    buf_print(out, "%-16s %" PRId64 " files, ", "deployments", all->files);
    add_size(out, all->file_bytes);
    buf_add_text(out, "\ntables, with their indexes\n");
    for (size_t i = 0; i < all->table_count; i++) {
        const struct stats_table *table = &all->tables[i];
        buf_print(out, "  %-14s %" PRId64 " rows", table->name, table->rows);
        if (table->bytes >= 0) {
            buf_add_text(out, ", ");
            add_size(out, table->bytes);
        }
        buf_add_char(out, '\n');
    }
    buf_add_text(out, "environments, by what they store as quotas count it\n");
    for (size_t i = 0; i < all->env_count && i < ENVIRONMENTS_SHOWN; i++)
        add_env(out, &all->envs[i]);
    if (all->env_count > ENVIRONMENTS_SHOWN)
        buf_print(out, "  and %zu smaller ones; --json lists all\n",
                  all->env_count - ENVIRONMENTS_SHOWN);
    add_retention(out, all);
}

/* ---- as JSON ---- */

static void write_tables(const struct db_stats_all *all, struct buf *out)
{
    members_add_name(out, "tables");
    buf_add_char(out, '[');
    for (size_t i = 0; i < all->table_count; i++) {
        buf_add_text(out, i ? ",{" : "{");
        members_add_text(out, "name", slice_of(all->tables[i].name));
        members_add_number(out, "rows", all->tables[i].rows);
        if (all->tables[i].bytes >= 0)
            members_add_number(out, "bytes", all->tables[i].bytes);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

static void write_envs(const struct db_stats_all *all, struct buf *out)
{
    members_add_name(out, "environments");
    buf_add_char(out, '[');
    for (size_t i = 0; i < all->env_count; i++) {
        const struct stats_env *env = &all->envs[i];
        struct run_word_count words[RUN_STATUS_COUNT];
        size_t count = run_count_words(VOCABULARY_B, env->counts.runs, words);
        buf_add_text(out, i ? ",{" : "{");
        members_add_number(out, "number", env->counts.env);
        members_add_text(out, "name", slice_of(env->name));
        members_add_number(out, "storedBytes", env->counts.stored);
        members_add_name(out, "runs");
        buf_add_char(out, '{');
        for (size_t w = 0; w < count; w++)
            members_add_number(out, words[w].word, (int64_t)words[w].count);
        buf_add_text(out, "}}");
    }
    buf_add_char(out, ']');
}

static void write_json(const struct db_stats_all *all, struct buf *out)
{
    buf_add_char(out, '{');
    members_add_number(out, "schema", all->schema);
    members_add_text(out, "epoch", slice_of(all->epoch));
    members_add_number(out, "fileBytes", all->file.bytes);
    members_add_number(out, "freeBytes", all->file.free_bytes);
    members_add_number(out, "logBytes", all->file.log_bytes);
    members_add_number(out, "deploymentFiles", all->files);
    members_add_number(out, "deploymentBytes", all->file_bytes);
    write_tables(all, out);
    write_envs(all, out);
    members_add_number(out, "retainMs", all->options->retain_ms);
    if (all->options->retain_ms) {
        members_add_number(out, "endedRunsToRemove", all->retained.runs);
        members_add_number(out, "bytesToRemove", all->retained.bytes);
    }
    buf_add_text(out, "}\n");
}

/* ---- begin, finish ---- */

static void db_stats_finish(struct db_stats_all *all)
{
    size_t at = 0;
    uint32_t number = 0;
    for (struct stats_project *project; (project = table_next(all->projects, &at));) {
        free(project->id);
        free(project->ref);
        free(project);
    }
    table_finish(all->projects);
    for (char *name; (name = slots_next(&all->names, &number));)
        free(name);
    slots_finish(&all->names);
    free(all->tables);
    free(all->envs);
}

enum err db_stats(const struct db_stats_options *options, struct buf *out,
                  struct failure *why)
{
    struct table projects;
    struct db_stats_all all = { .options = options, .projects = &projects };
    struct sqlite_look *look = NULL;
    struct buf path = { 0 };
    buf_print(&path, "%s/runcast.db", options->data);
    buf_add_char(&path, '\0');
    table_init(&projects, key_of);
    enum err err = sqlite_look_open(path.ptr, false, &look, why);
    if (!err)
        err = ask(&all, look, why);
    if (!err && options->as_json)
        write_json(&all, out);
    else if (!err)
        write_text(&all, out);
    db_stats_finish(&all);
    sqlite_look_close(look);
    buf_finish(&path);
    return err;
}
