/* build_environment.h - what each child of a build has in its environment: names that are listed
 * here, those that the operator names, and nothing else.
 *
 *   all        PATH HOME TMPDIR LANG NODE_ENV …        and what the operator passes on
 *   install    + the variables that came with the deployment (buildEnvVars)
 *   commands   the same
 *   index      + TRIGGER_…, with the key of this build; not those of the deployment */
#pragma once

#include "os/process/child_environment.h"
#include "supervisor/versions/build_job.h"

struct build_home {
    const char *directory; /* HOME and TMPDIR: scratch, the child's own */
    const char
        *program;       /* that executes the version; a path has its folder in PATH first */
    char *const *outer; /* the environment of this process */
    const char
        *passed; /* names that are passed on from it, with commas or spaces between */
};

void build_environment_install(struct child_environment *environment,
                               const struct build_home *home, const struct build_job *job);
void build_environment_index(struct child_environment *environment,
                             const struct build_home *home, const struct build_job *job);
