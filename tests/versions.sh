#!/usr/bin/env bash
# Clusters of gateways of two versions, as during an upgrade.
#
#   tests/versions.sh COMMIT [NAME…]
#
# Builds the program of COMMIT in build-versions, and this one in build-gcc. Runs scripts of
# tests/integration (by default those below) with gateways of both: the earlier version leads, then it
# follows. The script `cluster` upgrades three gateways one after the other. Tests of what COMMIT
# lacks are skipped: they name the commit since which gateways do it (`since` of gateway.mjs). The
# output is kept in build-versions. The last line is `N passed, N failed`.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
[ $# -gt 0 ] || { sed -n 2,10p "$0" >&2; exit 2; }
commit=$(git rev-parse --verify "$1^{commit}")
shift
names=("$@")
[ $# -gt 0 ] || names=(followed_model followed_calls followed_takeover forwarding)

log=$top/build-versions
mkdir -p "$log"
if [ "$(cat "$log/commit" 2>/dev/null)" != "$commit" ]; then
    rm -rf "$log/source" "$log/build"
    mkdir "$log/source"
    git archive "$commit" | tar -x -C "$log/source"
    cmake -S "$log/source" -B "$log/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DUNITS=OFF >"$log/cmake.out"
    ninja -C "$log/build" runcast >"$log/ninja.out"
    echo "$commit" >"$log/commit"
fi
cmake -S . -B build-gcc -G Ninja -DCMAKE_BUILD_TYPE=Release -DUNITS=OFF >"$log/cmake.out"
ninja -C build-gcc >"$log/ninja.out"

export GATEWAY_BIN=$top/build-gcc/runcast GATEWAY_RELEASE_BIN=$top/build-gcc/runcast SHIM_DIR=$top/build-gcc
export GATEWAY_OTHER_BIN=$log/build/runcast GATEWAY_OTHER_COMMIT=$commit

passed=0 failed=0
run() { # OTHERS NAME NODE-OPTION…
    local others=$1 name=$2
    if GATEWAY_OTHERS=$others node --test-reporter=tap "${@:3}" "tests/integration/$name.test.mjs" >"$log/$name-$others.out" 2>&1; then
        passed=$((passed + 1))
        echo "ok     $name, $others of the earlier version"
    else
        failed=$((failed + 1))
        echo "FAILED $name, $others of the earlier version: $log/$name-$others.out"
    fi
}
run a,b,c cluster --test-name-pattern='one after the other'
for name in "${names[@]}"; do
    for others in a b,c; do run "$others" "$name"; done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
