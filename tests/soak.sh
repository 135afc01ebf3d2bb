#!/usr/bin/env bash
# Tests that take hours: kills, models and simulations of many seeds, fuzzing.
#
#   tests/soak.sh [--kills N] [--powers N] [--flips N] [--models N] [--ops N] [--sims N]
#                 [--minutes N] [--trespasses N] [--runs N] [part …]
#
#   kills      kill -9 under load, N rounds                            (1000)
#   power      losses of power under load, N of them; needs root       (200)
#   damage     starts with one wrong bit in the database, N of them    (1000)
#   model      N seeds of the model test, of --ops writes each         (50, 20000)
#   sim        N seeds of each simulation with crashes                 (5000)
#   fuzz       each fuzz target for N minutes, with libFuzzer          (10)
#   isolation  N operations of environments that guess others' ids     (1000000)
#   database   faults of a PostgreSQL, such as two minutes without it
#   deployed   N runs of two deployments, while the gateway, the supervise
#              role and controllers are killed, once for each 50 runs   (1000)
#
# Without a part, it runs all of them. Builds into build-asan, build-gcc and build-fuzz. The output
# is kept in build-soak, along with the findings of fuzzers. The seed of a failure is printed, and
# is in that output. The last line is `N passed, N failed`.
set -euo pipefail
shopt -s nullglob

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
usage() { sed -n 2,20p "$0" >&2; exit 2; }

kills=1000 powers=200 flips=1000 models=50 ops=20000 sims=5000 minutes=10 trespasses=1000000 runs=1000
parts=()
while [ $# -gt 0 ]; do
    case $1 in
    --kills | --powers | --flips | --models | --ops | --sims | --minutes | --trespasses | --runs)
        [[ ${2:-} =~ ^[0-9]+$ ]] || usage
        declare "${1#--}=$2"
        shift 2 ;;
    kills | power | damage | model | sim | fuzz | isolation | database | deployed) parts+=("$1"); shift ;;
    *) usage ;;
    esac
done
[ ${#parts[@]} -gt 0 ] || parts=(kills power damage model sim fuzz isolation database deployed)
wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }

log=$top/build-soak
mkdir -p "$log"
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
export GATEWAY_BIN=$top/build-asan/runcast GATEWAY_RELEASE_BIN=$top/build-gcc/runcast
export SHIM_DIR=$top/build-gcc

configure() { # FOLDER COMPILER CMAKE-OPTION…
    CC=$2 cmake -S . -B "$1" -G Ninja "${@:3}" >"$log/$1.out"
}

passed=0 failed=0
run() { # NAME COMMAND…
    local name=$1 began=$SECONDS
    shift
    if "$@" >"$log/$name.out" 2>&1; then
        passed=$((passed + 1))
        echo "ok     $name, $((SECONDS - began)) s"
    else
        failed=$((failed + 1))
        echo "FAILED $name, $((SECONDS - began)) s: $log/$name.out"
        tail -n 30 "$log/$name.out"
    fi
}

if wanted kills || wanted power || wanted damage || wanted model || wanted sim ||
    wanted isolation || wanted database || wanted deployed; then
    configure build-asan gcc -DCMAKE_BUILD_TYPE=Debug -DSANITIZE=address
    configure build-gcc gcc -DCMAKE_BUILD_TYPE=Release
    ninja -C build-asan runcast sim_gateway sim_cluster
    ninja -C build-gcc runcast shim_sync
fi
if wanted kills; then
    run "kills-$kills" env ROUNDS="$kills" node --test-reporter=tap \
        tests/integration/durability.test.mjs
fi
if wanted database; then
    run database-120 env DATABASE_AWAY_S=120 node --test-reporter=tap \
        tests/integration/database_faults.test.mjs
fi
if wanted power; then
    run "power-$powers" env POWERS="$powers" node --test-reporter=tap \
        --test-name-pattern="power is lost" tests/integration/durability.test.mjs
fi
if wanted damage; then
    run "damage-$flips" env FLIPS="$flips" node --test-reporter=tap \
        tests/integration/damage.test.mjs
fi
if wanted model; then
    for ((i = 0; i < models; i++)); do
        seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
        run "model-$seed" env SEED="$seed" OPS="$ops" node --test-reporter=tap \
            tests/integration/model.test.mjs
    done
fi
if wanted sim; then
    seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
    run "sim-$seed" env SEED="$seed" SEEDS="$sims" build-asan/sim_gateway
    run "cluster-$seed" env SEED="$seed" SEEDS="$sims" build-asan/sim_cluster none
fi
if wanted isolation; then
    seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
    run "isolation-$seed" env SEED="$seed" OPS="$trespasses" node --test-reporter=tap \
        tests/integration/isolation.test.mjs
fi
if wanted deployed; then
    seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
    run "deployed-$seed" env SEED="$seed" RUNS="$runs" KILLS=$((runs / 50)) \
        node --test-reporter=tap tests/integration/kills.test.mjs
fi
if wanted fuzz; then
    configure build-fuzz clang -DCMAKE_BUILD_TYPE=Debug -DSANITIZE=address -DFUZZ=ON
    for source in tests/fuzz/fuzz_*.c; do
        name=$(basename "$source" .c)
        ninja -C build-fuzz "$name"
        mkdir -p "$log/corpus-$name"
        malloc_limit=256
        [ "$name" != fuzz_archive ] || malloc_limit=8 # inputs have at most 1 MiB
        run "$name" "build-fuzz/$name" -max_total_time=$((minutes * 60)) -timeout=20 -rss_limit_mb=2048 \
            -malloc_limit_mb="$malloc_limit" \
            -artifact_prefix="$log/$name-" "$log/corpus-$name" \
            "tests/fuzz/corpus/${name#fuzz_}"
    done
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
