/* report.h - the lines that launcher and keeper send to the spawner.
 *
 *   note TEXT      something optional is missing; continues
 *   error TEXT     the program was not executed
 *   program PID    its process group, where there is no namespace
 *   exit CODE, signal NUMBER     how the program ended
 *
 * Each line is one short write, so the lines of two writers do not mix. */
#pragma once

__attribute__((format(printf, 2, 3))) void report_line(const char *word, const char *format,
                                                       ...);

/* Reports how a process ended; status as from waitpid. */
void report_end(int status);

/* Reports what failed, with errno, and exits. */
_Noreturn void report_give_up(const char *what);
