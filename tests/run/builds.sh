# builds.sh - declares the builds and the installations that programs need.
#
# Sourced by tests/run.sh after programs.sh. Each function may be called more than once.

last_build=""

# Declares a build as a program with one test: the build is complete and free of warnings. One build
# runs at a time. Builds that only --all needs have a low priority, because tests run meanwhile. The
# others do not: half of the tests wait for build-asan, among them some that take minutes.
add_build() { # FOLDER COMPILER TARGETS CMAKE-OPTION…
    local folder=$1 priority=() share=100
    [ -z "${command_of[$folder]:-}" ] || return 0
    [[ $folder =~ ^build-(gcc|asan)$ ]] || priority=(nice -n 10) share=10
    add "$folder" builds 1800 "" "${priority[@]}" bash -c '
        configure_and_build() {
            CC=$1 cmake -S . -B "$0" -G Ninja -DWERROR=ON "${@:3}" || return 1
            ninja -k 0 -j 2 -C "$0" $2
        }
        as_test "$0 compiles with $1 and without a warning" configure_and_build "$@"
    ' "$@"
    after_of[$folder]=$last_build
    share_of[$folder]=$share
    last_build=$folder
}

# Builds with many programs use lld, which links in a third of the time of ld.
quick_linker=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld)

# The Release build, with asserts. Integration and conformance tests run it. Backtraces need only lines, with which it
# compiles a sixth faster.
build_gcc() {
    add_build build-gcc gcc all -DCMAKE_BUILD_TYPE=Release -DDEBUG_LEVEL=1 -DUNITS=OFF
}
build_asan() {
    add_build build-asan gcc "all${all:+ runcast-bench runcast-floor}" -DCMAKE_BUILD_TYPE=Debug -DSANITIZE=address "${quick_linker[@]}"
}
# With ThreadSanitizer: only tests of code with its own threads (threaded_tests). Needs --all.
build_tsan() {
    add_build build-tsan gcc "$(threaded_tests | tr '\n' ' ')" -DCMAKE_BUILD_TYPE=Debug \
        -DSANITIZE=thread "${quick_linker[@]}"
}
# With clang, for its warnings. None of its programs run. Needs --all.
build_clang() {
    add_build build-clang clang all -DCMAKE_BUILD_TYPE=None
}
# The program compiled without libpq, liburing and the dashboard. Needs --all.
build_plain() {
    add_build build-plain gcc runcast -DCMAKE_BUILD_TYPE=None -DPOSTGRES=OFF -DIO_URING=OFF \
        -DDASHBOARD=OFF
}

# Prints the names of tests that ThreadSanitizer checks: those of the store. Simulations have one thread.
threaded_tests() {
    local source
    for source in tests/unit/store/**/test_*.c; do
        basename "$source" .c
    done | sort -u
}

# Installs the packages of a lockfile, unless node_modules matches it: as copies of the packages of another folder, or
# of those that an earlier clone has installed, or else by npm ci.
install_modules() { # FOLDER [FROM]
    local hash kept
    hash=$(sha256sum <"$1/package-lock.json")
    kept=${XDG_CACHE_HOME:-$HOME/.cache}/runcast-tests/${1##*/}
    [ "$(cat "$1/node_modules/.lockfile-hash" 2>/dev/null)" != "$hash" ] || return 0
    if [ -n "${2:-}" ]; then
        python3 -B tests/support/python/copy_modules.py "$1" "$2" && echo "$hash" >"$1/node_modules/.lockfile-hash"
    elif [ "$(cat "$kept/.lockfile-hash" 2>/dev/null)" = "$hash" ]; then
        link_modules "$kept" "$1/node_modules"
    else
        (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund) &&
            echo "$hash" >"$1/node_modules/.lockfile-hash" && { link_modules "$1/node_modules" "$kept" || true; }
    fi
}

# Replaces a folder by a copy, whose files are hard links where that is possible.
link_modules() { # FROM TO
    mkdir -p "${2%/*}" && rm -rf "$2" "$2.$$" &&
        { cp -al "$1" "$2.$$" || { rm -rf "$2.$$" && cp -a "$1" "$2.$$"; }; } && mv "$2.$$" "$2"
}
export -f install_modules link_modules

# Installs packages for the tests of folders. deploy and sdk-v4 get copies from worker, which has all of them.
add_modules() { # FOLDER…, of tests
    local folder from
    for folder in "$@"; do
        [ -z "${command_of[npm-${folder##*/}]:-}" ] || continue
        from=""
        if [[ $folder =~ ^conformance/(deploy|sdk-v4)$ ]]; then
            from=tests/conformance/worker
            add_modules conformance/worker
        fi
        add "npm-${folder##*/}" modules 300 "${from:+npm-worker}" \
            bash -c 'as_test "the packages of $0 are installed" install_modules "$0" "$1"' "tests/$folder" "$from"
    done
}

# Tests that a program without libpq refuses a PostgreSQL with a message.
reports_missing_postgres() { # PROGRAM
    RUNCAST_ENCRYPTION_KEY=$(printf '5e%.0s' {1..32}) "$1" --check-config \
        --database postgresql://nowhere/x 2>&1 | grep "built without PostgreSQL"
}
export -f reports_missing_postgres
