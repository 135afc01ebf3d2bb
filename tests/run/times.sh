#!/usr/bin/env bash
# Updates the table of the durations of programs, from the last run of the tests:
#
#   tests/run.sh --all && tests/run/times.sh
#
# Programs that did not run keep their lines. Programs that take less than three seconds are not listed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
table=tests/run/times.txt
{
    [ ! -e "$table" ] || cat "$table"
    for file in build-asan/log/*.time; do
        echo "$(basename "$file" .time) $(cat "$file")"
    done | awk '{ printf "%s %.0f %.0f\n", $1, $2, $3 + $4 }'
} | awk '!/^#/ { line[$1] = $0; clock[$1] = $2 }
    END { for (name in line) if (clock[name] >= 3) print line[name] }' | LC_ALL=C sort >"$table.new"
{
    echo "# name, seconds of the clock, seconds of CPU: written by tests/run/times.sh"
    cat "$table.new"
} >"$table"
rm "$table.new"
