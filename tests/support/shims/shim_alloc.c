/* shim_alloc.c - counts how often a program allocates memory, and makes one allocation
 * fail, those of a library, or the start of one thread.
 *
 *   LD_PRELOAD=shim_alloc.so  SHIM_ALLOC=file  SHIM_ALLOC_FAIL=n  SHIM_ALLOC_REFUSE=name
 *   SHIM_THREAD_FAIL=n  gateway
 *
 * The first eight bytes of the file are the number of calls so far of malloc, calloc and
 * realloc, in the machine's byte order. The n-th of them, from 1, fails; so do those called
 * by a library whose path contains the name, and the n-th call of pthread_create. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static _Atomic uint64_t before_start;
static _Atomic uint64_t *calls = &before_start;
static uint64_t fails, thread_fails; /* 0: none */
static const char *refused;          /* NULL: no library */

static uint64_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void start(void)
{
    fails = number_of("SHIM_ALLOC_FAIL");
    thread_fails = number_of("SHIM_THREAD_FAIL");
    refused = getenv("SHIM_ALLOC_REFUSE");
    const char *path = getenv("SHIM_ALLOC");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    if (ftruncate(fd, sizeof(*calls)) == 0) {
        void *shared =
            mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (shared != MAP_FAILED)
            calls = shared;
    }
    close(fd);
}

static bool is_of_refused(void *caller)
{
    Dl_info found;
    return refused && dladdr(caller, &found) && strstr(found.dli_fname, refused);
}

static bool is_refused(void *caller)
{
    bool is_nth = atomic_fetch_add(calls, 1) + 1 == fails && fails;
    if (!is_nth && !is_of_refused(caller))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*run)(void *), void *argument)
{
    static _Atomic uint64_t threads;
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (atomic_fetch_add(&threads, 1) + 1 == thread_fails)
        return EAGAIN;
    return real(thread, attributes, run, argument);
}
