#!/usr/bin/env bash
# Runs everything that must pass before a change lands, or the named parts:
#
#   tests/run.sh [--all] [lint|build|unit|sim|fuzz|integration|conformance|postgres …]
#   tests/run.sh --only NAME…    the programs with these names, as this prints them
#   tests/run.sh --asan NAME…    the tests of a folder of src, or a script, under ASan
#
# --all also runs every script under ASan and the threaded tests under TSan, and compiles and links
# everything with clang (tests/README.md). The part postgres, which runs only if it is named, runs the
# integration tests with each gateway on a PostgreSQL.
#
# Installs missing packages, builds into build-gcc, build-asan and, with --all, build-plain,
# build-tsan and build-clang with warnings as errors, and runs programs in parallel. The last line is
# `N passed, N failed` and counts unit tests, scenarios, conformance operations, rules, replayed corpora. A
# test that crashes, hangs, is skipped or reports nothing has failed. The lines before it name the
# ten programs that took longest, those in which a test failed, and those that did not run because
# their tool is not packaged for this release of Debian or Node is too old. The output of each
# program is kept in build-asan/log.
set -euo pipefail
shopt -s nullglob globstar

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
usage() {
    sed -n 4,6p "$0" >&2
    exit 2
}

all="" asan_only="" parts=() selected=() known=(lint build unit sim fuzz integration conformance)
given=("$@")
case ${1:-} in
--all) all=1 && shift ;;
--only | --asan)
    [ $# -gt 1 ] || usage
    [ "$1" = --only ] || asan_only=1
    all=1 selected=("${@:2}")
    shift $#
    [[ ${selected[0]} != pg-* ]] || parts=(postgres)
    ;;
esac
parts+=("$@")
[ ${#parts[@]} -gt 0 ] || parts=("${known[@]}")
for part in "${parts[@]}"; do
    [[ " ${known[*]} postgres " == *" $part "* ]] || usage
done
wanted() {
    local part
    for part in "$@"; do
        [[ " ${parts[*]} " != *" $part "* ]] || return 0
    done
    return 1
}

source deploy/packages.sh

# Stops the services that these packages start, since the tests start their own.
services=()
for package in nginx haproxy caddy pgbouncer; do
    is_installed "$package" || services+=("$package")
done
install_missing "${build_packages[@]}" "${test_packages[@]}"
if [ ${#services[@]} -gt 0 ] && [ -d /run/systemd/system ]; then
    as_root systemctl disable --now "${services[@]}" >&2
fi

# with_postgres.mjs starts one server for all of these tests, and runs this script again.
if wanted postgres && [ -z "${GATEWAY_DATABASE:-}" ]; then
    exec node tests/support/js/with_postgres.mjs tests/run.sh "${given[@]}"
fi
server=${GATEWAY_DATABASE:-}
unset GATEWAY_DATABASE

log=$top/build-asan/log
export POSTGRES_TEMPLATE=$top/build-asan/new-postgres # see tests/support/js/postgres.mjs
rm -rf "$log" "$POSTGRES_TEMPLATE"*
mkdir -p "$log"

export CMOCKA_MESSAGE_OUTPUT=TAP ASAN_OPTIONS=detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
export GATEWAY_BIN=$top/build-gcc/runcast
export GATEWAY_RELEASE_BIN=$top/build-gcc/runcast SHIM_DIR=$top/build-gcc
[ -z "$all" ] || export TESTS_IN_FULL=1 # for scripts that repeat less without it
export GOGC=off GOMEMLIMIT=500MiB # esbuild in the CLI collects garbage only at this size
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER:-ccache}
    export CCACHE_DEPEND=1 # a file that is not in the cache is not preprocessed once more
fi

source tests/run/programs.sh
source tests/run/builds.sh
source tests/run/parts.sh

not_run=()
add counting python 60 "" python3 -B tests/support/python/test_count.py
! wanted build fuzz integration conformance postgres || build_gcc
! wanted build unit sim fuzz integration conformance postgres || build_asan
! wanted build || add_builds
! wanted lint || add_lint
! wanted unit || add_unit
! wanted sim || add_sim
[ -z "$all" ] || ! wanted unit || add_threaded
! wanted fuzz || add_fuzz
! wanted integration || add_integration
! wanted postgres || add_postgres "$server"
! wanted conformance || add_conformance
run_programs
sum_up
