/* singleton.c - the words of the strategies of singleton queues. */
#include "core/queues/singleton.h"

static const char *const words[SINGLETON_COUNT] = {
    [SINGLETON_QUEUE] = "queue",
    [SINGLETON_SKIP] = "skip",
    [SINGLETON_CANCEL] = "cancel",
};

const char *singleton_word(enum singleton strategy)
{
    return words[strategy];
}

enum singleton singleton_of_word(struct slice word)
{
    for (unsigned i = SINGLETON_NONE + 1; i < SINGLETON_COUNT; i++)
        if (slice_is(word, words[i]))
            return (enum singleton)i;
    return SINGLETON_NONE;
}
