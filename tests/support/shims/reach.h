/* reach.h - lets a shim read its file after the gateway has entered its sandbox.
 *
 * A test replaces the file, which is in a place where the gateway's sandbox
 * (os/process/landlock.c) allows no reads. So before the gateway gives up its rights, the
 * file's folder is added to those that it keeps. */
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long (*reach_syscall)(long, ...);

static void reach_folder_of(const char *variable, int ruleset)
{
    char folder[4096];
    const char *path = getenv(variable), *slash = path ? strrchr(path, '/') : NULL;
    if (!slash)
        return;
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    struct landlock_path_beneath_attr rule = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE,
        .parent_fd = open(folder, O_PATH | O_CLOEXEC),
    };
    reach_syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
}

long syscall(long number, ...)
{
    static const char *const variables[] = { "SHIM_CLOCK", "SHIM_MONOTONIC", "SHIM_DISK",
                                             "SHIM_CONTROL" };
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(arguments, long);
    va_end(arguments);
    if (!reach_syscall)
        *(void **)&reach_syscall = dlsym(RTLD_NEXT, "syscall");
    for (size_t i = 0; number == SYS_landlock_restrict_self && i < 4; i++)
        reach_folder_of(variables[i], (int)given[0]);
    return reach_syscall(number, given[0], given[1], given[2], given[3], given[4],
                         given[5]);
}
