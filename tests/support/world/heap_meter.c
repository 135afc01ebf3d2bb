/* heap_meter.c - adds up allocations that the sanitizer's allocator reports to hooks. */
#include "tests/support/world/heap_meter.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* From sanitizer/allocator_interface.h, which gcc's builds without a sanitizer do not
 * link. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *,
                                                                size_t),
                                              void (*on_free)(const volatile void *))
    __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *memory) __attribute__((weak));

static atomic_llong held, peak;

static void on_malloc(const volatile void *memory, size_t size)
{
    (void)memory;
    long long now = atomic_fetch_add(&held, (long long)size) + (long long)size;
    if (now > atomic_load(&peak))
        atomic_store(&peak, now);
}

static void on_free(const volatile void *memory)
{
    if (memory)
        atomic_fetch_sub(&held, (long long)__sanitizer_get_allocated_size(memory));
}

void heap_meter_begin(void)
{
    static bool is_installed;
    if (!is_installed && __sanitizer_install_malloc_and_free_hooks)
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
    is_installed = true;
    atomic_store(&held, 0);
    atomic_store(&peak, 0);
}

size_t heap_meter_peak(void)
{
    return (size_t)atomic_load(&peak);
}
