/* child_world.h - real children on a libuv loop, for tests.
 *
 * The test's own program is the launcher, and a program to be executed: child_world_main
 * gives each of its roles to whom it is asked for. */
#pragma once

#include "base/buf.h"
#include "base/loop.h"
#include "os/process/children.h"

struct job {
    struct process process;
    struct buf output[2]; /* by enum process_pipe */
    bool ended;
    struct process_end end;
    size_t pause_after; /* bytes of standard output; 0: never */
};

struct child_world {
    struct loop *loop;
    struct processes *processes;
};

extern struct child_world child_world;

int child_world_set_up(void **state);
int child_world_tear_down(void **state);

/* argv of a role of this program. Those that are listed: --inspect writes what a child has. */
#define CHILD_SELF "/proc/self/exe"

/* True: this is no test but a role, which ended with the status. */
bool child_world_role(int argc, char **argv, int *status);

/* sh -c script, in / and with a PATH. */
struct process_options child_shell(const char *const arguments[4]);
#define SHELL(script) child_shell((const char *const[]){ "sh", "-c", script, NULL })

void job_begin(struct job *job, const struct process_options *options);
void job_wait(struct job *job);
void job_finish(struct job *job);

/* Turns until standard output has the text. */
void job_wait_for(struct job *job, const char *text);

/* One turn, which waits for something at most so long. */
void child_world_turn(int64_t ms);

/* How many processes have this text in their arguments. */
int child_count(const char *mark);

/* Turns until there is none; false: after ten seconds there still is. */
bool child_none_is_left(const char *mark);
