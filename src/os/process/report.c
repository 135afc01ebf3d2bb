/* report.c - writes lines to the descriptor that the spawner reads. */
#include "os/process/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process/launch.h"

enum { EXIT_NOT_EXECUTED = 127 };

/* A failed write is ignored, because no process reads the report then. */
void report_line(const char *word, const char *format, ...)
{
    char line[256];
    va_list args;
    int word_len = snprintf(line, sizeof(line), "%s ", word);
    va_start(args, format);
    int len = vsnprintf(line + word_len, sizeof(line) - word_len, format, args);
    va_end(args);
    size_t whole = (size_t)word_len + (size_t)(len > 0 ? len : 0);
    if (whole > sizeof(line) - 1)
        whole = sizeof(line) - 1;
    line[whole] = '\n';
    if (write(LAUNCH_REPORT_FD, line, whole + 1) < 0)
        return;
}

void report_end(int status)
{
    if (WIFSIGNALED(status))
        report_line("signal", "%d", WTERMSIG(status));
    else
        report_line("exit", "%d", WEXITSTATUS(status));
}

_Noreturn void report_give_up(const char *what)
{
    report_line("error", "%s: %s", what, strerror(errno));
    _exit(EXIT_NOT_EXECUTED);
}
