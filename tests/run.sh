#!/usr/bin/env bash
# Everything that must pass, or the parts that are named:
#
#   tests/run.sh [lint|build|unit|sim|fuzz|integration|conformance|postgres …]
#
# postgres, only when it is named: the integration tests once more, each gateway on a PostgreSQL.
#
# Installs what is missing, builds (into build-asan, build-tsan, build-gcc, build-clang and build-plain,
# warnings are errors) and runs at most two programs at a time. The last line says
# `N passed, N failed`: unit tests, scenarios, conformance operations, rules, replayed
# corpora. What crashes, hangs, is skipped or says nothing has failed. The lines before it
# name the programs in which something failed, and what was not run, because its tool is not
# packaged for this release of Debian, or because Node is too old for it. What each program
# said is kept in build-asan/log.
set -euo pipefail
shopt -s nullglob globstar

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
source deploy/packages.sh

all_parts=(lint build unit sim fuzz integration conformance)
parts=("${@:-${all_parts[@]}}")
for part in "${parts[@]}"; do
    [[ " ${all_parts[*]} postgres " == *" $part "* ]] || { sed -n 2,7p "$0" >&2; exit 2; }
done
wanted() {
    local part
    for part in "$@"; do
        [[ " ${parts[*]} " != *" $part "* ]] || return 0
    done
    return 1
}

log=$top/build-asan/log
rm -rf "$log"
mkdir -p "$log"

export CMOCKA_MESSAGE_OUTPUT=TAP ASAN_OPTIONS=detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
export GATEWAY_BIN=$top/build-asan/runcast
export GATEWAY_RELEASE_BIN=$top/build-gcc/runcast SHIM_DIR=$top/build-gcc

# --- running programs, two at a time -----------------------------------------------------

# Runs a program with a time limit and leaves `PASSED FAILED` in $log/NAME.count. What it says
# last is how long the program took, and of that the time of processors.
run_counted() { # NAME SECONDS COMMAND…
    local name=$1 seconds=$2 status=0 start=$SECONDS counts
    local TIMEFORMAT='%U %S'
    shift 2
    { time timeout --kill-after=10 "$seconds" "$@" >"$log/$name.out" 2>"$log/$name.err" </dev/null; } \
        2>"$log/$name.time" || status=$?
    [ "$status" -ne 124 ] || echo "ended after $seconds s" >>"$log/$name.err"
    counts=$(python3 -B tests/support/python/count.py "$log/$name.out" "$status") || counts="0 1"
    echo "$counts" >"$log/$name.count"
    printf '%-44s %4d passed %4d failed %4d s, %4.0f s of CPU\n' "$name" $counts $((SECONDS - start)) \
        "$(awk "END { print \$1 + \$2 }" "$log/$name.time")"
    [ "${counts#* }" -eq 0 ] || show_failure "$name" "$status"
}

show_failure() { # NAME STATUS
    local failures
    failures=$(grep -nE -A16 '^ *(not ok|FAIL|WARN|SKIP)\b|# SKIP|(error|warning): ' \
        "$log/$1.out" | head -n 100) || true
    printf '%s\n' "--- $1 ended with status $2" "${failures:-$(tail -n 20 "$log/$1.out")}"
    tail -n 40 "$log/$1.err"
    echo "---"
}

begin() { # NAME SECONDS COMMAND…
    while [ "$(jobs -rp | grep -vcx "${waiting:-none}")" -ge 2 ]; do
        wait -n || true
    done
    run_counted "$@" &
}

# One after the other beside the two: programs that hardly use a processor, but wait minutes for
# what takes its time, and then what may take any time.
begin_waiting() { # FUNCTION
    "$1" &
    waiting=$!
}

finish() {
    wait || true
}

# Turns an exit status into one counted line.
as_test() { # TEXT COMMAND…
    local text=$1 status=0
    shift
    "$@" || status=$?
    if [ "$status" -eq 0 ]; then echo "ok - $text"; else echo "not ok - $text"; fi
    return "$status"
}
export -f as_test

# --- building ----------------------------------------------------------------------------

# A build is one test: it is complete and free of warnings.
build() { # FOLDER COMPILER TARGETS CMAKE-OPTION…
    local folder=$1 compiler=$2 targets=$3
    shift 3
    run_counted "$folder" 1800 bash -c '
        configure_and_build() {
            CC=$1 cmake -S . -B "$0" -G Ninja -DWERROR=ON "${@:3}" &&
                ninja -k 0 -j 2 -C "$0" $2
        }
        as_test "$0 compiles with $1 and without a warning" configure_and_build "$@"
    ' "$folder" "$compiler" "$targets" "$@"
}

# Simulations, and the tests of what has a thread of its own.
threaded_tests() {
    local source
    for source in tests/sim/*.c tests/unit/store/**/test_*.c; do
        basename "$source" .c
    done | sort -u
}

# npm ci, unless node_modules is what the lockfile says.
install_modules() { # FOLDER
    local hash
    hash=$(sha256sum <"$1/package-lock.json")
    [ "$(cat "$1/node_modules/.lockfile-hash" 2>/dev/null)" != "$hash" ] || return 0
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund) &&
        echo "$hash" >"$1/node_modules/.lockfile-hash"
}
export -f install_modules

# A program that was built without libpq, and is given a PostgreSQL.
names_what_it_lacks() {
    RUNCAST_ENCRYPTION_KEY=$(printf '5e%.0s' {1..32}) build-plain/runcast --check-config \
        --database postgresql://nowhere/x 2>&1 | grep "built without PostgreSQL"
}
export -f names_what_it_lacks

# --- the parts ---------------------------------------------------------------------------

# What the packages of proxies start is not wanted: the tests start their own.
services=()
for package in nginx haproxy caddy pgbouncer; do
    is_installed "$package" || services+=("$package")
done
install_missing "${build_packages[@]}" "${test_packages[@]}"
if [ ${#services[@]} -gt 0 ] && [ -d /run/systemd/system ]; then
    as_root systemctl disable --now "${services[@]}" >&2
fi

# One server for all of them, begun around this script.
if wanted postgres && [ -z "${GATEWAY_DATABASE:-}" ]; then
    exec node tests/support/js/with_postgres.mjs tests/run.sh "${parts[@]}"
fi
server=${GATEWAY_DATABASE:-}
unset GATEWAY_DATABASE

not_run=()
run_counted counting 60 python3 -B tests/support/python/test_count.py

if wanted build unit sim fuzz integration conformance postgres; then
    build build-asan gcc all -DCMAKE_BUILD_TYPE=Debug -DSANITIZE=address
fi
if wanted build fuzz integration postgres; then
    build build-gcc gcc all -DCMAKE_BUILD_TYPE=Release -DUNITS=OFF
fi
# Of what these build hardly anything is run: they are there for their warnings.
build_others() {
    build build-clang clang all -DCMAKE_BUILD_TYPE=None
    build build-plain gcc runcast -DCMAKE_BUILD_TYPE=None -DPOSTGRES=OFF -DIO_URING=OFF -DDASHBOARD=OFF
    run_counted without-postgres 60 bash -c \
        'as_test "a program without libpq names what it lacks" names_what_it_lacks'
}
if wanted build && ! wanted integration; then
    build_others
fi
if wanted build unit sim; then
    build build-tsan gcc "$(threaded_tests | tr '\n' ' ')" \
        -DCMAKE_BUILD_TYPE=Debug -DSANITIZE=thread
fi

if wanted lint; then
    for rule in layers doors circles tags banned sizes tops format spelling links tidy; do
        if [[ $rule =~ ^(format|tidy)$ ]] && ! command -v "clang-$rule-14" >/dev/null; then
            not_run+=("lint-$rule (clang-$rule-14 is not packaged here)")
        else
            begin "lint-$rule" 300 python3 -B "tests/lint/$rule.py" "$top"
        fi
    done
fi
if wanted unit; then
    for source in tests/unit/**/test_*.c; do
        name=$(basename "$source" .c)
        limit=120
        [ "$name" != test_pg_store ] || limit=600 # a server syncs the disk for each commit
        begin "$name" $limit "build-asan/$name"
    done
    # The byte tables, slow readers, drains and ends hold through TLS, too, and through a ring.
    for name in test_{http_conn,http_body,http_exchange,delivery,ws_conn,ws_close,ws_limits}; do
        begin "tls-$name" 240 env NET_WORLD=tls "build-asan/$name"
    done
    for name in test_{http_conn,http_body,http_exchange,delivery,ws_conn,ws_close,ws_limits}; do
        begin "ring-$name" 240 env NET_WORLD=ring "build-asan/$name"
    done
fi
if wanted sim; then
    for source in tests/sim/*.c; do
        name=$(basename "$source" .c)
        begin "$name" 300 "build-asan/$name"
    done
fi
if wanted unit sim; then
    for name in $(threaded_tests); do
        begin "tsan-$name" 900 "build-tsan/$name"
    done
fi
if wanted fuzz; then
    for source in tests/fuzz/fuzz_*.c; do
        name=$(basename "$source" .c)
        begin "replay-${name#fuzz_}" 120 "build-asan/replay_${name#fuzz_}" \
            "tests/fuzz/corpus/${name#fuzz_}"
        begin "judge-${name#fuzz_}" 120 "build-gcc/replay_${name#fuzz_}" --judge-time \
            "tests/fuzz/corpus/${name#fuzz_}"
    done
fi
if wanted integration postgres; then
    for folder in property contract conformance/sdk-v4 conformance/sdk-v3; do
        run_counted "npm-${folder#*/}" 300 bash -c \
            'as_test "npm ci in $0" install_modules "$0"' "tests/$folder"
    done
fi
if wanted integration; then
    run_script() { # BEGIN SCRIPT
        "$1" "$(basename "$2" .test.mjs)" 400 node --test-reporter=tap "$2"
    }
    waiting_scripts=(tests/integration/{slow_readers,realtime_rules,readme}.test.mjs
        tests/integration/{takeover,kept_files,postgres,database_faults,database_ways}.test.mjs
        tests/contract/contract.test.mjs)
    run_waiting_scripts() {
        local script
        for script in "${waiting_scripts[@]}"; do
            run_script run_counted "$script"
        done
        if wanted build; then
            renice -n 19 "$BASHPID" >/dev/null # what is built now keeps nobody waiting
            build_others
        fi
    }
    begin_waiting run_waiting_scripts
    for script in tests/{integration,property,contract}/*.test.mjs; do
        [[ " ${waiting_scripts[*]} " == *" $script "* ]] || run_script begin "$script"
    done
fi
if wanted postgres; then
    sqlite_only=" $(sed -n 's/^\([a-z_]*\): .*/\1/p' tests/integration/sqlite_only.txt | tr '\n' ' ') "
    for script in tests/{integration,contract}/*.test.mjs; do
        name=$(basename "$script" .test.mjs)
        [[ $sqlite_only == *" $name "* ]] || begin "pg-$name" 600 env "GATEWAY_DATABASE=$server" \
            node --test-reporter=tap "$script"
    done
fi
if wanted conformance; then
    conformance=tests/conformance
    for folder in sdk-v4 sdk-v3 browser worker deploy; do
        begin "npm-$folder" 300 bash -c \
            'as_test "npm ci in $0" install_modules "$0"' "$conformance/$folder"
    done
    begin ws-model 300 bash -c \
        'as_test "the rules of runs.v1 hold in 400 random histories" node "$0" 400' \
        "$conformance/realtime/ws-model.mjs"
    finish

    beside_a_gateway=(node tests/support/js/with_gateway.mjs)
    settings=(env CONF_STRICT=1
        "SDK_DIR=$top/$conformance/sdk-v4" "SDK3_DIR=$top/$conformance/sdk-v3")
    begin sdk-4.8.3 600 "${settings[@]}" "${beside_a_gateway[@]}" \
        node $conformance/management/sdk-calls.mjs
    begin sdk-queues 120 "${settings[@]}" "${beside_a_gateway[@]}" \
        node $conformance/management/sdk-queues.mjs
    begin sdk-bulk 120 "${settings[@]}" "${beside_a_gateway[@]}" \
        node $conformance/management/sdk-bulk.mjs
    # It calls crypto, which Node 18 has as a global only when asked for it.
    begin sdk-3.3.17 600 "${settings[@]}" NODE_OPTIONS=--experimental-global-webcrypto \
        "${beside_a_gateway[@]}" \
        node $conformance/management/sdk-calls-v3.mjs
    begin realtime-4.8.3 300 env LONG=1 "SDK_DIR=$top/$conformance/sdk-v4" \
        "${beside_a_gateway[@]}" node $conformance/realtime/sdk-realtime-v4.mjs
    begin realtime-3.3.17 300 env LONG=1 "SDK_DIR=$top/$conformance/sdk-v3" \
        "${beside_a_gateway[@]}" node $conformance/realtime/sdk-realtime-v3.mjs
    for folder in sdk-v4 sdk-v3; do
        begin "streams-$folder" 200 env "SDK_DIR=$top/$conformance/$folder" \
            "${beside_a_gateway[@]}" node $conformance/realtime/sdk-streams.mjs
    done
    begin cli-4.8.3 400 "${beside_a_gateway[@]}" node $conformance/worker/e2e.mjs
    begin cli-ends 400 node --test-reporter=tap $conformance/worker/cli.test.mjs
    begin cli-sessions 400 node --test-reporter=tap $conformance/worker/sessions.test.mjs
    begin cli-pace 400 node --test-reporter=tap $conformance/worker/pace.test.mjs
    begin cli-platform 400 node --test-reporter=tap $conformance/worker/platform.test.mjs
    begin cli-mcp 300 node --test-reporter=tap $conformance/worker/mcp.test.mjs
    begin cli-readme 300 node --test-reporter=tap $conformance/worker/readme.test.mjs
    begin worker 300 env NO_CLI=1 "${beside_a_gateway[@]}" --worker \
        node $conformance/worker/e2e.mjs success failsAfterThreeAttempts \
        succeedsOnThirdAttempt cancelWhileExecuting delayed
    if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
        not_run+=("deploy (what is deployed needs Node 20)")
    else
        begin deploy 900 env "HOME=$log/home" "${beside_a_gateway[@]}" --execute \
            node $conformance/deploy/deploy.mjs
    fi
    if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
        not_run+=("browser-dashboard (it deploys, which needs Node 20)")
    else
        begin browser-dashboard 600 env "HOME=$log/home" \
            node --test-reporter=tap $conformance/browser/dashboard.test.mjs
    fi
    begin browser 200 node --test-reporter=tap $conformance/browser/browser.test.mjs
    begin browser-prefix 200 node --test-reporter=tap $conformance/browser/prefix.test.mjs
    begin browser-client 200 node --test-reporter=tap $conformance/browser/client.test.mjs
fi
finish

# Two gateways, a database, a proxy and all kinds of clients at once: beside others they starve.
if wanted conformance; then
    run_counted cli-takeover 400 node --test-reporter=tap $conformance/worker/takeover.test.mjs
    run_counted browser-takeover 400 node --test-reporter=tap $conformance/browser/takeover.test.mjs
fi

# --- the sum -----------------------------------------------------------------------------

passed=0 failed=0
for file in "$log"/*.count; do
    read -r good bad <"$file"
    passed=$((passed + good)) failed=$((failed + bad))
    [ "$bad" -eq 0 ] || echo "failed: $(basename "$file" .count) ($bad)"
done
for rule in "${not_run[@]}"; do
    echo "not run: $rule"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
