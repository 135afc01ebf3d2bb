/* last_words.c - handles SIGABRT. */
#include "base/last_words.h"

#include <signal.h>
#include <unistd.h>

static const char words[] = "runcast: aborted; if no line above has a reason, memory or "
                            "threads ran out: see the limits of the system\n";

/* Calls only functions that a signal handler may call. abort() ends the program when this
 * returns. */
static void report(int signal)
{
    (void)signal;
    ssize_t written = write(STDERR_FILENO, words, sizeof(words) - 1);
    (void)written;
}

void last_words_init(void)
{
    signal(SIGABRT, report);
}

void last_words_given(void)
{
    signal(SIGABRT, SIG_DFL);
}
