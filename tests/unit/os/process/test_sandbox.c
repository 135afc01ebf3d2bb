/* A thread in the sandbox reaches the named files and ports and nothing else. */
#include "tests/support/world/unit.h"

#include <netdb.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "os/process/sandbox.h"
#include "os/process/sanitized.h"
#include "tests/support/escapes.h"

/* Things that cannot be undone are done in a child; any output of it is a failure. */
struct world {
    char top[64], data[80], outside[80], abstract[80];
    int says;
    struct sandbox sandbox;
};

/* ---- the child ---- */

__attribute__((format(printf, 2, 3))) static void say(struct world *world,
                                                      const char *format, ...)
{
    char line[256];
    va_list values;
    va_start(values, format);
    int len = vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    if (write(world->says, line, (size_t)len) != len)
        abort();
}

static void expect(struct world *world, bool holds, const char *what)
{
    if (!holds)
        say(world, "%s\n", what);
}

static void begin_sandbox_with(struct world *world, bool abstract_sockets)
{
    struct sandbox_path paths[] = {
        { world->data, SANDBOX_CHANGE },
        { "/usr/share/zoneinfo", SANDBOX_READ },
        { "/lib", SANDBOX_READ },
        { "/usr/lib", SANDBOX_READ },
        { "/etc/hosts", SANDBOX_READ },
        { "/etc/nsswitch.conf", SANDBOX_READ },
        { "/etc/host.conf", SANDBOX_READ },
        { "/proc/self", SANDBOX_READ },
        { "/dev/null", SANDBOX_USE },
        { "/dev/urandom", SANDBOX_READ },
        { "/there/is/none", SANDBOX_CHANGE },
    };
    uint16_t port = 3; /* not 0, which escape_bind tries */
    struct sandbox_options options = { .paths = paths,
                                       .path_count = sizeof(paths) / sizeof(paths[0]),
                                       .ports = &port,
                                       .port_count = 1,
                                       .abstract_sockets = abstract_sockets };
    struct failure why = { 0 };
    if (sandbox_begin(&options, &world->sandbox, &why))
        say(world, "refused: %s\n", why.text);
}

static void begin_sandbox(struct world *world)
{
    begin_sandbox_with(world, false);
}

/* Landlock restricts threads that ran before only since ABI 8. */
static void try_all(struct world *world, const char *thread, bool ran_before)
{
    const struct sandbox *sandbox = &world->sandbox;
    bool has_landlock = !ran_before || !sandbox->threads_outside;
    for (int i = 0; i < ESCAPES; i++) {
        const struct escape *escape = &escapes[i];
        struct escape_place place = { .data = world->data, .outside = world->outside };
        bool applies = escape->least_abi
                           ? has_landlock && sandbox->landlock >= escape->least_abi
                           : sandbox->filter || !escape->expected;
        if (!applies || (escape->sanitizer && PROCESS_IS_SANITIZED))
            continue;
        snprintf(place.names, sizeof(place.names), "%s-%d", thread, i);
        int error = escape->attempt(&place);
        if (error != escape->expected)
            say(world, "%s, in a thread that %s: %s, not %s\n", escape->name, thread,
                strerror(error), strerror(escape->expected));
    }
}

static void *try_below(void *arg)
{
    try_all(arg, "another one began", false);
    return NULL;
}

static void *try_later(void *arg)
{
    pthread_t below;
    try_all(arg, "began later", false);
    pthread_create(&below, NULL, try_below, arg);
    pthread_join(below, NULL);
    return NULL;
}

static void every_thread_is_kept(struct world *world)
{
    pthread_t later;
    begin_sandbox(world);
    expect(world, world->sandbox.landlock && world->sandbox.filter,
           "this kernel has neither");
    expect(world, !world->sandbox.threads_outside, "there was no other thread");
    try_all(world, "began it", false);
    pthread_create(&later, NULL, try_later, world);
    pthread_join(later, NULL);
}

static pthread_barrier_t begun;

static void *try_earlier(void *arg)
{
    pthread_barrier_wait(&begun);
    try_all(arg, "ran before", true);
    return NULL;
}

static void a_thread_that_ran_before_is_told_of(struct world *world)
{
    pthread_t earlier;
    pthread_barrier_init(&begun, NULL, 2);
    pthread_create(&earlier, NULL, try_earlier, world);
    begin_sandbox(world);
    expect(world, world->sandbox.threads_outside == (world->sandbox.landlock < 8),
           "a thread is outside of Landlock, and it is not said");
    pthread_barrier_wait(&begun);
    pthread_join(earlier, NULL);
}

/* Otherwise the attempts would prove nothing. The kernel itself refuses only root
 * nothing. */
static void without_it_nothing_is_refused_so(struct world *world)
{
    for (int i = 0; i < ESCAPES && geteuid() == 0; i++) {
        const struct escape *escape = &escapes[i];
        struct escape_place place = { .data = world->data, .outside = world->outside };
        bool ends_this = strncmp(escape->name, "execve", 6) == 0;
        snprintf(place.names, sizeof(place.names), "free-%d", i);
        if (!ends_this && escape->expected && escape->attempt(&place) == escape->expected)
            say(world, "%s is refused without a sandbox, too\n", escape->name);
    }
}

static void names_are_resolved(struct world *world)
{
    struct addrinfo *found = NULL;
    begin_sandbox(world);
    int failed = getaddrinfo("localhost", "80", NULL, &found);
    if (failed)
        say(world, "localhost: %s\n", gai_strerror(failed));
    else
        freeaddrinfo(found);
}

static void *use_database(void *arg)
{
    struct world *world = arg;
    char path[128];
    sqlite3 *db = NULL;
    snprintf(path, sizeof(path), "%s/test.db", world->data);
    int failed = sqlite3_open(path, &db);
    const char *all = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                      "CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (1);"
                      "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA quick_check";
    if (failed || sqlite3_exec(db, all, NULL, NULL, NULL))
        say(world, "SQLite: %s\n", sqlite3_errmsg(db));
    sqlite3_close(db);
    return NULL;
}

static void a_database_is_written(struct world *world)
{
    pthread_t writer;
    begin_sandbox(world);
    use_database(world);
    pthread_create(&writer, NULL, use_database, world);
    pthread_join(writer, NULL);
}

static int speak(const char *path, size_t len,
                 int (*call)(int, const struct sockaddr *, socklen_t))
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, path, len);
    int error =
        escape_error(call(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)));
    close(fd);
    return error;
}

static void sockets_are_made_where_it_is_allowed(struct world *world)
{
    char inside[96], outside[96];
    size_t len = (size_t)snprintf(inside, sizeof(inside), "%s/socket", world->data);
    begin_sandbox(world);
    expect(world, speak(inside, len, bind) == 0, "a socket in the data directory");
    expect(world, unlink(inside) == 0, "its removal");
    len = (size_t)snprintf(outside, sizeof(outside), "%s/socket", world->outside);
    expect(world, speak(outside, len, bind) == EACCES, "a socket outside");
    if (world->sandbox.landlock >= 6)
        expect(world, speak(world->abstract, sizeof(world->abstract), connect) == EPERM,
               "the abstract socket of another process");
}

static void abstract_sockets_are_reached_if_asked_for(struct world *world)
{
    begin_sandbox_with(world, true);
    expect(world, speak(world->abstract, sizeof(world->abstract), connect) == 0,
           "the abstract socket of another process");
}

static void privileges_do_not_come_back(struct world *world)
{
    char line[256];
    bool none_new = false, is_filtered = false;
    begin_sandbox(world);
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof(line), status)) {
        none_new = none_new || strcmp(line, "NoNewPrivs:\t1\n") == 0;
        is_filtered = is_filtered || strcmp(line, "Seccomp:\t2\n") == 0;
    }
    if (status)
        fclose(status);
    expect(world, none_new, "NoNewPrivs");
    expect(world, is_filtered, "Seccomp");
}

#ifdef __SANITIZE_ADDRESS__
static void *volatile kept;

static void a_sanitizer_finds_leaks(struct world *world)
{
    begin_sandbox(world);
    expect(world, !__lsan_do_recoverable_leak_check(), "a leak where there is none");
    kept = malloc(1234);
    kept = NULL;
    expect(world, __lsan_do_recoverable_leak_check(), "a leak that is not found");
}
#endif

/* ---- the parent ---- */

static void make_file(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static int listen_abstract(struct world *world)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(world->abstract + 1, sizeof(world->abstract) - 1, "%s", world->top);
    memcpy(address.sun_path, world->abstract, sizeof(world->abstract));
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          offsetof(struct sockaddr_un, sun_path) + sizeof(world->abstract)),
                     0);
    return fd;
}

static void read_all(int fd, char *text, size_t room)
{
    size_t len = 0;
    for (ssize_t got; len < room - 1 && (got = read(fd, text + len, room - 1 - len)) > 0;)
        len += (size_t)got;
    text[len] = '\0';
}

struct scene {
    const char *name;
    void (*body)(struct world *world);
};

static void play(void **state)
{
    const struct scene *scene = *state;
    struct world world = { .top = "/tmp/runcast-sandbox-XXXXXX" };
    char said[8192], remove[96];
    int ends[2], status;
    assert_non_null(mkdtemp(world.top));
    snprintf(world.data, sizeof(world.data), "%s/data", world.top);
    snprintf(world.outside, sizeof(world.outside), "%s/outside", world.top);
    assert_int_equal(mkdir(world.data, 0700) | mkdir(world.outside, 0700), 0);
    make_file(world.outside, "victim");
    int listener = listen_abstract(&world);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (!child) {
        world.says = ends[1];
        scene->body(&world);
        _exit(42);
    }
    close(ends[1]);
    read_all(ends[0], said, sizeof(said));
    close(ends[0]);
    close(listener);
    waitpid(child, &status, 0);
    snprintf(remove, sizeof(remove), "rm -r %s", world.top);
    assert_int_equal(system(remove), 0);
    assert_string_equal(said, "");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static struct scene scenes[] = {
    { "every thread is kept", every_thread_is_kept },
    { "a thread that ran before is told of", a_thread_that_ran_before_is_told_of },
    { "without it nothing is refused so", without_it_nothing_is_refused_so },
    { "names are resolved", names_are_resolved },
    { "a database is written", a_database_is_written },
    { "sockets are made where it is allowed", sockets_are_made_where_it_is_allowed },
    { "abstract sockets are reached if asked for",
      abstract_sockets_are_reached_if_asked_for },
    { "privileges do not come back", privileges_do_not_come_back },
#ifdef __SANITIZE_ADDRESS__
    { "a sanitizer finds leaks", a_sanitizer_finds_leaks },
#endif
};

enum { SCENES = sizeof(scenes) / sizeof(scenes[0]) };

int main(void)
{
    struct CMUnitTest tests[SCENES];
    for (int i = 0; i < SCENES; i++)
        tests[i] = (struct CMUnitTest){ scenes[i].name, play, NULL, NULL, &scenes[i] };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
