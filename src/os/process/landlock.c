/* landlock.c - builds a Landlock ruleset, which forbids everything that no rule allows.
 *
 *   ruleset { files, ports, scopes } ◄── rule: what is allowed below a folder ─┐
 *                                    ◄── rule: a port that may be bound ───────┴─► restrict
 *
 * The kernel rejects bits that its ABI does not know, so only known bits are requested. The
 * headers of Debian 12 have ABI 2; newer numbers and structs are defined here. */
#include "os/process/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- definitions that the headers may lack ---- */

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14) /* ABI 3 */
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP /* ABI 4 */
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif
#ifndef LANDLOCK_SCOPE_SIGNAL /* ABI 6 */
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif
#ifndef LANDLOCK_RESTRICT_SELF_TSYNC
#define LANDLOCK_RESTRICT_SELF_TSYNC (1U << 3) /* ABI 8 */
#endif

/* struct landlock_ruleset_attr of ABI 6. An older kernel accepts it if unknown members are
 * 0. */
struct ruleset {
    uint64_t files, ports, scopes;
};

/* struct landlock_net_port_attr, and its number. */
struct port_rule {
    uint64_t allowed, port;
};
enum { PORT_RULE = 2 };

/* ---- rules ---- */

/* Bits that apply to a path that is not a folder. */
static const uint64_t file_bits =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
    LANDLOCK_ACCESS_FS_IOCTL_DEV;

static uint64_t known_files(int abi)
{
    uint64_t bits = (LANDLOCK_ACCESS_FS_REFER << 1) - 1;
    if (abi >= 3)
        bits |= LANDLOCK_ACCESS_FS_TRUNCATE;
    if (abi >= 5)
        bits |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
    return bits;
}

/* Returns the bits of an access. Creating devices, pipes and links is never allowed. */
static uint64_t bits_of(enum sandbox_access access)
{
    const uint64_t read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    const uint64_t use = read | LANDLOCK_ACCESS_FS_WRITE_FILE;
    const uint64_t sockets = LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE;
    switch (access) {
    case SANDBOX_READ: return read;
    case SANDBOX_USE: return use;
    case SANDBOX_SOCKETS: return sockets;
    case SANDBOX_CHANGE:
        return use | sockets | LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_MAKE_REG |
               LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR |
               LANDLOCK_ACCESS_FS_REFER;
    }
    return 0;
}

static struct ruleset ruleset_of(int abi, const struct sandbox_options *options)
{
    struct ruleset ruleset = { .files = known_files(abi) };
    if (abi >= 4)
        ruleset.ports = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;
    if (abi >= 6)
        ruleset.scopes =
            LANDLOCK_SCOPE_SIGNAL |
            (options->abstract_sockets ? 0 : LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET);
    return ruleset;
}

/* ---- the calls ---- */

int landlock_abi(void)
{
    long abi =
        syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? -errno : (int)abi;
}

static int open_ruleset(const struct ruleset *ruleset)
{
    return (int)syscall(SYS_landlock_create_ruleset, ruleset, sizeof(*ruleset), 0);
}

static enum err cannot(const char *what, struct failure *why)
{
    return explain(why, ERR_STORE, "Landlock: %s: %s", what, strerror(errno));
}

static enum err allow_path(int ruleset, uint64_t known, const struct sandbox_path *path,
                           struct failure *why)
{
    struct stat found;
    int fd = open(path->path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found)) {
        if (fd >= 0)
            close(fd);
        return OK; /* it cannot be reached anyway */
    }
    struct landlock_path_beneath_attr rule = { .allowed_access =
                                                   bits_of(path->access) & known,
                                               .parent_fd = fd };
    if (!S_ISDIR(found.st_mode))
        rule.allowed_access &= file_bits;
    long failed =
        syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    enum err refused = failed ? cannot(path->path, why) : OK;
    close(fd);
    return refused;
}

static enum err allow_port(int ruleset, uint64_t access, uint16_t port, struct failure *why)
{
    struct port_rule rule = { access, port };
    return syscall(SYS_landlock_add_rule, ruleset, PORT_RULE, &rule, 0)
               ? cannot("a port", why)
               : OK;
}

static enum err allow_ports(int ruleset, const struct sandbox_options *options,
                            struct failure *why)
{
    enum err refused = OK;
    for (size_t i = 0; !refused && i < options->port_count; i++)
        refused = allow_port(ruleset, LANDLOCK_ACCESS_NET_BIND_TCP, options->ports[i], why);
    for (size_t i = 0; !refused && i < options->server_count; i++)
        refused =
            allow_port(ruleset, LANDLOCK_ACCESS_NET_CONNECT_TCP, options->servers[i], why);
    return refused;
}

static enum err allow_all(int ruleset, int abi, const struct sandbox_options *options,
                          struct failure *why)
{
    enum err refused = OK;
    for (size_t i = 0; !refused && i < options->path_count; i++)
        refused = allow_path(ruleset, known_files(abi), &options->paths[i], why);
    return refused || abi < 4 ? refused : allow_ports(ruleset, options, why);
}

enum err landlock_begin(int abi, const struct sandbox_options *options, struct failure *why)
{
    struct ruleset asked = ruleset_of(abi, options);
    unsigned flags = abi >= LANDLOCK_ALL_THREADS ? LANDLOCK_RESTRICT_SELF_TSYNC : 0;
    int ruleset = open_ruleset(&asked);
    if (ruleset < 0)
        return cannot("a ruleset", why);
    enum err refused = allow_all(ruleset, abi, options, why);
    if (!refused && syscall(SYS_landlock_restrict_self, ruleset, flags))
        refused = cannot("this process", why);
    close(ruleset);
    return refused;
}
