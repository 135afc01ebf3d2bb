/* report.h - what launcher and keeper say to the spawner: lines, a word and what belongs to it.
 *
 *   note TEXT      goes on without something that was wanted if possible
 *   error TEXT     the program was not executed
 *   program PID    its process group, where there is no namespace
 *   exit CODE, signal NUMBER     how the program ended
 *
 * Each line is one write, and short: two who write do not mix. */
#pragma once

__attribute__((format(printf, 2, 3))) void report_line(const char *word, const char *format,
                                                       ...);

/* How a process ended, as waitpid says it. */
void report_end(int status);

/* Says what failed, with errno, and ends. */
_Noreturn void report_give_up(const char *what);
