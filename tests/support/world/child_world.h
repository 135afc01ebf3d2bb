/* child_world.h - real children on a libuv loop, for tests.
 *
 * The test's own program is also the launcher, and a program to be executed:
 * child_world_main runs the role that the arguments name. */
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

/* argv of a role of this program. --inspect prints what a child has. */
#define CHILD_SELF "/proc/self/exe"

/* Returns true if this process is not the test but a role, which exited with *status. */
bool child_world_role(int argc, char **argv, int *status);

/* Options for sh -c script, in / and with a PATH. */
struct process_options child_shell(const char *const arguments[4]);
#define SHELL(script) child_shell((const char *const[]){ "sh", "-c", script, NULL })

void job_begin(struct job *job, const struct process_options *options);
void job_wait(struct job *job);
void job_finish(struct job *job);

/* Runs turns until standard output contains the text. */
void job_wait_for(struct job *job, const char *text);

/* Runs one turn, which waits at most that long. */
void child_world_turn(int64_t ms);

/* Returns how many processes have this text in their arguments. */
int child_count(const char *mark);

/* Runs turns until there is none. Returns false if there is one after ten seconds. */
bool child_none_is_left(const char *mark);
