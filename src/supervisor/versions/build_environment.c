/* build_environment.c - fills in the environment variables of a build's children. */
#include "supervisor/versions/build_environment.h"

#include "base/buf.h"
#include "base/json/scan.h"

static const char default_path[] =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* Set here; neither the operator nor the deployment can override them. */
static const char *const fixed[] = { "PATH", "HOME", "TMPDIR", "LANG", "NODE_ENV" };

/* Variables for node that an operator may have set. */
static const char *const usual[] = { "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS",
                                     "SSL_CERT_FILE" };

enum { FIXED = sizeof(fixed) / sizeof(fixed[0]), USUAL = sizeof(usual) / sizeof(usual[0]) };

static struct slice outer_value(char *const *outer, struct slice name)
{
    for (; outer && *outer; outer++)
        if (strncmp(*outer, name.ptr, name.len) == 0 && (*outer)[name.len] == '=')
            return slice_of(*outer + name.len + 1);
    return (struct slice){ 0 };
}

static bool is_in(const char *const *names, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

static void add(struct child_environment *environment, struct slice name,
                struct slice value)
{
    struct buf text = { 0 };
    buf_add(&text, name);
    buf_add_char(&text, '\0');
    child_environment_add(environment, text.ptr, value);
    buf_finish(&text);
}

static void add_path(struct child_environment *environment, const struct build_home *home)
{
    struct slice path = outer_value(home->outer, SLICE("PATH"));
    const char *end = strrchr(home->program, '/');
    struct buf text = { 0 };
    if (end && end > home->program) {
        buf_add(&text, (struct slice){ home->program, (size_t)(end - home->program) });
        buf_add_char(&text, ':');
    }
    buf_add(&text, path.len ? path : slice_of(default_path));
    child_environment_add(environment, "PATH", buf_slice(&text));
    buf_finish(&text);
}

static void add_passed(struct child_environment *environment, const struct build_home *home)
{
    static const char between[] = " ,";
    const char *names = home->passed;
    for (size_t i = 0; i < USUAL; i++) {
        struct slice value = outer_value(home->outer, slice_of(usual[i]));
        if (value.len)
            child_environment_add(environment, usual[i], value);
    }
    for (size_t len; *names; names += len) {
        names += strspn(names, between);
        len = strcspn(names, between);
        struct slice name = { names, len }, value = { 0 };
        if (len && !is_in(fixed, FIXED, name) && !is_in(usual, USUAL, name))
            value = outer_value(home->outer, name);
        if (value.ptr)
            add(environment, name, value);
    }
}

static void add_machine(struct child_environment *environment,
                        const struct build_home *home)
{
    add_path(environment, home);
    child_environment_add(environment, "HOME", slice_of(home->directory));
    child_environment_add(environment, "TMPDIR", slice_of(home->directory));
    child_environment_add(environment, "LANG", SLICE("C.UTF-8"));
    child_environment_add(environment, "NODE_ENV", SLICE("production"));
    add_passed(environment, home);
}

/* Returns false for a name that no environment variable can have; it is left out. */
static bool is_name(struct slice name)
{
    return name.len && !memchr(name.ptr, '=', name.len) && !memchr(name.ptr, 0, name.len);
}

static void add_variables(struct child_environment *environment, struct slice variables)
{
    struct scan_members members = scan_members(variables);
    struct buf name = { 0 }, text = { 0 };
    struct slice key, value;
    while (scan_next_member(&members, &key, &value)) {
        /* The key is a part of the text between quotes; include them. */
        buf_clear(&name);
        buf_clear(&text);
        bool read = scan_string((struct slice){ key.ptr - 1, key.len + 2 }, &name) &&
                    scan_string(value, &text);
        struct slice found = buf_slice(&text);
        if (read && is_name(buf_slice(&name)) && !memchr(found.ptr, 0, found.len) &&
            !is_in(fixed, FIXED, buf_slice(&name)))
            add(environment, buf_slice(&name), found);
        if (text.len)
            explicit_bzero(text.ptr, text.len);
    }
    buf_finish(&name);
    buf_finish(&text);
}

void build_environment_install(struct child_environment *environment,
                               const struct build_home *home, const struct build_job *job)
{
    add_machine(environment, home);
    child_environment_add(environment, "NPM_CONFIG_UPDATE_NOTIFIER", SLICE("false"));
    if (job->variables)
        add_variables(environment, bytes_slice(job->variables));
}

/* The index of a bun version looks for bun in this variable. */
static void add_bun(struct child_environment *environment, const char *program)
{
    const char *end = strrchr(program, '/');
    if (end && strcmp(end, "/bun") == 0)
        child_environment_add(environment, "BUN_INSTALL_BIN",
                              (struct slice){ program, (size_t)(end - program) });
}

void build_environment_index(struct child_environment *environment,
                             const struct build_home *home, const struct build_job *job)
{
    add_machine(environment, home);
    add_bun(environment, home->program);
    child_environment_add(environment, "TRIGGER_API_URL", bytes_slice(job->api_url));
    child_environment_add(environment, "TRIGGER_SECRET_KEY", bytes_slice(job->key));
    child_environment_add(environment, "TRIGGER_PROJECT_REF", slice_of(job->project_ref));
    child_environment_add(environment, "TRIGGER_PROJECT_ID", slice_of(job->project));
    child_environment_add(environment, "TRIGGER_DEPLOYMENT_ID", slice_of(job->deployment));
    child_environment_add(environment, "TRIGGER_DEPLOYMENT_VERSION",
                          slice_of(job->version));
    child_environment_add(environment, "TRIGGER_CONTENT_HASH",
                          bytes_slice(job->content_hash));
    if (job->branch)
        child_environment_add(environment, "TRIGGER_PREVIEW_BRANCH",
                              bytes_slice(job->branch));
}
