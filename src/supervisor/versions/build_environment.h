/* build_environment.h - the complete environment of each child of a build.
 *
 * Children get the variables listed here, those that the operator names, and no others:
 *
 *   all        PATH HOME TMPDIR LANG NODE_ENV …        and what the operator passes on
 *   install    + the variables that came with the deployment (buildEnvVars)
 *   commands   the same
 *   index      + TRIGGER_…, with this build's key; not those of the deployment */
#pragma once

#include "os/process/child_environment.h"
#include "supervisor/versions/build_job.h"

struct build_home {
    const char *directory; /* HOME and TMPDIR: the child's scratch folder */
    /* Program that executes the version. If it is a path, its folder is first in
     * PATH. */
    const char *program;
    char *const *outer; /* environment of this process */
    /* Names of variables to pass on from outer, separated by commas or spaces. */
    const char *passed;
};

void build_environment_install(struct child_environment *environment,
                               const struct build_home *home, const struct build_job *job);
void build_environment_index(struct child_environment *environment,
                             const struct build_home *home, const struct build_job *job);
