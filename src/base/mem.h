/* mem.h - small allocations that do not fail.
 *
 * They abort the process when memory runs out. Check a size that a client controls against
 * a limit first. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "base/last_words.h"
#include "base/slice.h"

static inline _Noreturn void mem_exhausted(void)
{
    fputs("runcast: out of memory\n", stderr);
    last_words_given();
    abort();
}

static inline void *mem_alloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory)
        mem_exhausted();
    return memory;
}

/* Like realloc; added memory is not cleared. */
static inline void *mem_resize(void *memory, size_t size)
{
    memory = realloc(memory, size ? size : 1);
    if (!memory)
        mem_exhausted();
    return memory;
}

/* Returns a terminated copy, owned by the caller. */
static inline char *mem_text(struct slice s)
{
    char *text = mem_alloc(s.len + 1);
    if (s.len)
        memcpy(text, s.ptr, s.len);
    return text;
}

/* All of these are zeroed. */
#define mem_new(type) ((type *)mem_alloc(sizeof(type)))
#define mem_new_flex(type, extra) ((type *)mem_alloc(sizeof(type) + (extra)))
#define mem_new_array(type, count) ((type *)mem_alloc(sizeof(type) * (count)))

/* For a local array that is never read before it is written; it is left unfilled. All
 * others are filled with zeros (CMakeLists.txt): filling 1.5 KiB takes a tenth of the time
 * that our own code needs for a frame. */
#define MEM_UNFILLED __attribute__((uninitialized))
