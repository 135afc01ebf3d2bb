#!/usr/bin/env bash
# upgrade.sh - an upgrade from the clients' view: the gateway restarts while 10,000 are connected.
#
#   bench/upgrade.sh [BUILD]    BUILD: a Release build directory (default: build)
#
# ROUNDS   how often (3); a table each time
# CLIENTS  how many (10000); each process needs as many descriptors
# DATA     data of the gateway, on a real disk (BUILD/bench-data)
# PORT     where it listens (3934)
#
# bench/README.md explains the table. Ends with status 1 if a client was refused, missed a change or
# was not back within 5 s.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/deploy/build.sh"
source "$root/bench/servers.sh"
read_build "$@"
rounds=${ROUNDS:-3}
clients=${CLIENTS:-10000}
data=$(realpath -m "${DATA:-$build/bench-data}")/upgrade # absolute, as it names the notify socket
missed=0
need_count ROUNDS "$rounds"
need_count CLIENTS "$clients"

build_programs "$build" runcast runcast-bench
ulimit -n "$(ulimit -Hn)"
if [ "$(ulimit -n)" -lt $((clients + 500)) ]; then
    echo "bench/upgrade.sh: $clients clients need $((clients + 500)) descriptors (ulimit -n)" >&2
    exit 2
fi
mkdir -p "$(dirname "$data")"

for round in $(seq "$rounds"); do
    rm -rf "$data" "$data.log"
    printf 'round %s of %s\n' "$round" "$rounds"
    "$build/runcast-bench" upgrade --gateway "$build/runcast" --data "$data" \
        --url "http://127.0.0.1:${PORT:-3934}" --clients "$clients" || missed=$((missed + 1))
done
rm -rf "$data"
if [ "$missed" -gt 0 ]; then
    printf '\n%s of %s rounds missed the target; the log of the last is %s\n' "$missed" \
        "$rounds" "$data.log"
    exit 1
fi
printf '\nnobody was refused, nothing was missed, all were back within 5 s\n'
