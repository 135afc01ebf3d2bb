#!/usr/bin/env bash
# Installs what is missing, builds the gateway into build/ and starts it:
#
#   deploy/run.sh [options of runcast…]
#
# The second start installs and builds nothing.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$top/deploy/packages.sh"

install_missing "${build_packages[@]}"

if [ ! -e "$top/build/build.ninja" ]; then
    echo "building into $top/build" >&2
    cmake -S "$top" -B "$top/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTESTS=OFF >&2
fi
ninja --quiet -C "$top/build" >&2

exec "$top/build/runcast" --print-keys "$@"
