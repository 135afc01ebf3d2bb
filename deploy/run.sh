#!/usr/bin/env bash
# Installs missing packages, builds the gateway into build/ and starts it:
#
#   deploy/run.sh [options of runcast…]
#
# Once everything is installed and built, it only starts the gateway.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$top/deploy/packages.sh"
source "$top/deploy/build.sh"

install_missing "${build_packages[@]}"
build_programs "$top/build" runcast

exec "$top/build/runcast" --print-keys "$@"
