# parts.sh - declares the programs of each part of the tests.
#
# Sourced by tests/run.sh after builds.sh. Scripts run against the Release build; those of
# under_asan run under ASan instead. With --all every other script also runs under ASan, with a name
# that begins with asan-, except those of release_only.

asan=(env "GATEWAY_BIN=$top/build-asan/runcast")

# Scripts that run under ASan, because they test code that parses bytes of clients, owns memory
# across calls, or deletes objects.
under_asan=" bad_input batches bulk damage db deletions deployments early_calls envvars events
    followed_calls followers held_calls http io_uring large leaving logs longpoll metrics
    operator_calls packets peers queues realtime realtime_rules repeats results run_calls
    schedules slow_readers statuses storage_quota streams tls tokens triggers upgrade values waits
    watches workers property-client refusals sdk-4.8.3 sdk-3.3.17 sdk-queues sdk-bulk
    realtime-4.8.3 realtime-3.3.17 streams-sdk-v4 streams-sdk-v3 worker "

# Scripts that start no program of the ASan build. Some start only gateways of the Release build, for
# example with a shim, others no gateway.
release_only=" client_connection client_rules container idle_polls install isolation late maintainer memory
    property-cron property-json slow_names "

# Adds a program that starts gateways: under ASan, in the Release build, or with --all in both.
add_script() { # ADD NAME GROUPS SECONDS NEEDS COMMAND…
    local add=$1 name=$2 groups=$3 seconds=$4 needs=$5
    shift 5
    if [[ $under_asan =~ [[:space:]]$name[[:space:]] ]]; then
        "$add" "$name" "$groups" "$seconds" "build-gcc build-asan $needs" "${asan[@]}" "$@"
        return
    fi
    "$add" "$name" "$groups" "$seconds" "build-gcc $needs" "$@"
    [ -z "$all" ] || [[ $release_only =~ [[:space:]]$name[[:space:]] ]] || "$add" "asan-$name" "$groups" "$seconds" "build-gcc build-asan $needs" "${asan[@]}" "$@"
}

add_builds() {
    add without-postgres plain 60 build-gcc bash -c \
        'as_test "a program without libpq reports the missing PostgreSQL" reports_missing_postgres build-gcc/runcast-plain'
    [ -n "$all" ] || return 0
    build_clang
    build_plain
    add plain-without-postgres plain 60 build-plain bash -c \
        'as_test "a build without libpq reports the missing PostgreSQL" reports_missing_postgres build-plain/runcast'
}

add_lint() {
    local rule
    for rule in layers doors circles tags banned sizes tops format spelling links chapters english \
        tidy; do
        if [[ $rule =~ ^(format|tidy)$ ]] && ! command -v "clang-$rule-14" >/dev/null; then
            not_run+=("lint-$rule (clang-$rule-14 is not packaged here)")
        else
            add "lint-$rule" lint 300 "" python3 -B "tests/lint/$rule.py" "$top"
        fi
    done
    add english-samples lint 60 "" python3 -B tests/support/python/test_english.py
}

add_unit() {
    local source name folder limit world
    for source in tests/unit/**/test_*.c; do
        name=$(basename "$source" .c) folder=$(dirname "${source#tests/unit/}") limit=240
        [ "$name" != test_pg_store ] || limit=600 # its server syncs the disk for each commit
        add "$name" "${folder%%/*} ${folder##*/} $folder" "$limit" build-asan "build-asan/$name"
    done
    # Tests of connections are repeated through TLS and through a ring. Two of them take as long as the others
    # together, so their repetitions need --all.
    local repeated=(test_{http_body,http_exchange,delivery,ws_conn,ws_close})
    [ -z "$all" ] || repeated+=(test_{http_conn,ws_limits})
    for world in tls ring; do
        for name in "${repeated[@]}"; do
            add "$world-$name" "net http net/http" 240 build-asan env "NET_WORLD=$world" "build-asan/$name"
        done
    done
}

add_sim() {
    local name
    for name in sim_gateway sim_pace sim_cluster; do
        add "$name" sim 300 build-asan "build-asan/$name"
    done
}

# Under TSan the threaded tests run once more.
add_threaded() {
    local name
    build_tsan
    for name in $(threaded_tests); do
        add "tsan-$name" threads 900 build-tsan "build-tsan/$name"
    done
}

add_fuzz() {
    local source name
    for source in tests/fuzz/fuzz_*.c; do
        name=$(basename "$source" .c)
        name=${name#fuzz_}
        add "replay-$name" fuzz 120 build-asan "build-asan/replay_$name" "tests/fuzz/corpus/$name"
        add "judge-$name" fuzz 120 build-gcc "build-gcc/replay_$name" --judge-time \
            "tests/fuzz/corpus/$name"
    done
}

# The name of a script; scripts of two folders may have the same file name.
name_of() { # SCRIPT
    local name
    name=$(basename "$1" .test.mjs)
    [[ $1 != tests/property/* ]] || name=property-$name
    echo "$name"
}

add_integration() {
    local script file
    add_modules property contract conformance/sdk-v4 conformance/sdk-v3
    for script in tests/{integration,property,contract}/*.test.mjs; do
        file=$(basename "$script" .test.mjs)
        add_script add "$(name_of "$script")" "$file" 600 \
            "npm-sdk-v4 npm-sdk-v3 npm-contract npm-property" node --test-reporter=tap "$script"
    done
}

# Runs the integration tests once more, each gateway on a PostgreSQL.
add_postgres() { # ADDRESS
    local script name sqlite_only
    add_modules property contract conformance/sdk-v4 conformance/sdk-v3
    sqlite_only=" $(sed -n 's/^\([a-z_]*\): .*/\1/p' tests/integration/sqlite_only.txt | tr '\n' ' ') "
    for script in tests/{integration,contract}/*.test.mjs; do
        name=$(basename "$script" .test.mjs)
        [[ $sqlite_only == *" $name "* ]] || add "pg-$name" "$name" 600 \
            "build-gcc build-asan npm-sdk-v4 npm-sdk-v3 npm-contract npm-property" \
            env "GATEWAY_DATABASE=$1" "${asan[@]}" node --test-reporter=tap "$script"
    done
}

add_conformance() {
    local folder name conformance=tests/conformance
    local with_gateway=(node tests/support/js/with_gateway.mjs) tap=(node --test-reporter=tap)
    local v4=("SDK_DIR=$top/$conformance/sdk-v4") v3=("SDK_DIR=$top/$conformance/sdk-v3")
    local settings=(env CONF_STRICT=1 "${v4[@]}" "SDK3_DIR=$top/$conformance/sdk-v3")
    local modules="npm-sdk-v4 npm-sdk-v3"
    add_modules conformance/{sdk-v4,sdk-v3,browser,worker,deploy}
    add ws-model realtime 300 "" bash -c \
        'as_test "the rules of runs.v1 hold in 400 random histories" node "$0" 400' \
        "$conformance/realtime/ws-model.mjs"

    local calls=$conformance/management realtime=$conformance/realtime worker=$conformance/worker
    add_script add sdk-4.8.3 sdk 600 "$modules" "${settings[@]}" "${with_gateway[@]}" node "$calls/sdk-calls.mjs"
    add_script add sdk-queues sdk 120 "$modules" "${settings[@]}" "${with_gateway[@]}" node "$calls/sdk-queues.mjs"
    add_script add sdk-bulk sdk 120 "$modules" "${settings[@]}" "${with_gateway[@]}" node "$calls/sdk-bulk.mjs"
    # The SDK uses the global crypto, for which Node 18 needs an option.
    add_script add sdk-3.3.17 sdk 600 "$modules" "${settings[@]}" \
        NODE_OPTIONS=--experimental-global-webcrypto "${with_gateway[@]}" node "$calls/sdk-calls-v3.mjs"
    add_script add realtime-4.8.3 realtime 300 "$modules" env LONG=1 "${v4[@]}" "${with_gateway[@]}" \
        node "$realtime/sdk-realtime-v4.mjs"
    add_script add realtime-3.3.17 realtime 300 "$modules" env LONG=1 "${v3[@]}" "${with_gateway[@]}" \
        node "$realtime/sdk-realtime-v3.mjs"
    add_script add streams-sdk-v4 streams 200 "$modules" env "${v4[@]}" "${with_gateway[@]}" \
        node "$realtime/sdk-streams.mjs"
    add_script add streams-sdk-v3 streams 200 "$modules" env "${v3[@]}" "${with_gateway[@]}" \
        node "$realtime/sdk-streams.mjs"

    modules="npm-worker npm-deploy npm-browser $modules"
    add_script add cli-4.8.3 cli 400 "$modules" "${with_gateway[@]}" node "$worker/e2e.mjs"
    add_script add cli-ends cli 400 "$modules" "${tap[@]}" "$worker/cli.test.mjs"
    for folder in sessions pace platform mcp readme prefix; do
        add_script add "cli-$folder" cli 600 "$modules" "${tap[@]}" "$worker/$folder.test.mjs"
    done
    add_script add worker workers 300 "$modules" env NO_CLI=1 "${with_gateway[@]}" --worker \
        node "$worker/e2e.mjs" success failsAfterThreeAttempts succeedsOnThirdAttempt \
        cancelWhileExecuting delayed
    if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
        not_run+=("deploy (deployed versions need Node 20)"
            "one test of cli-pace, one of cli-readme (they deploy)"
            "browser-dashboard (it deploys, which needs Node 20)")
    else
        add_script add deploy deployments 900 "$modules" env "HOME=$log/home" "${with_gateway[@]}" --execute \
            node "$conformance/deploy/deploy.mjs"
        add_script add browser-dashboard dashboard 600 "$modules" env "HOME=$log/home" "${tap[@]}" \
            "$conformance/browser/dashboard.test.mjs"
    fi
    add_script add browser realtime 400 "$modules" "${tap[@]}" "$conformance/browser/browser.test.mjs"
    add browser-values dashboard 60 "" "${tap[@]}" "$conformance/browser/page_values.test.mjs"
    add_script add browser-staying dashboard 300 "$modules" "${tap[@]}" "$conformance/browser/staying.test.mjs"
    add_script add browser-prefix browser 200 "$modules" "${tap[@]}" "$conformance/browser/prefix.test.mjs"
    add_script add browser-client client 200 "$modules" "${tap[@]}" "$conformance/browser/client.test.mjs"

    # Each of these starts three gateways, a database, a proxy and many clients, and times out next to many programs.
    add_script add_last cli-takeover takeover 600 "$modules" "${tap[@]}" "$worker/takeover.test.mjs"
    add_script add_last browser-takeover takeover 600 "$modules" "${tap[@]}" \
        "$conformance/browser/takeover.test.mjs"
}
