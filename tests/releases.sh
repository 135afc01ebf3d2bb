#!/usr/bin/env bash
# Runs deploy/run.sh and tests/run.sh on releases of Debian on which nothing is installed yet:
#
#   tests/releases.sh [12|13 …] [deploy|tests …] [user|root …]
#
#   deploy   deploy/run.sh, twice: first it installs and builds everything, then nothing
#   tests    tests/run.sh, whole (a quarter of an hour or more on two idle cores)
#   user     as an ordinary user who may use sudo
#   root     as root
#
# Default: both releases, both commands, the ordinary user. Each pair of release and user gets
# its own root in ${TMPDIR:-/tmp} (4 GB, by mmdebstrap), with a clone of the commit that is
# checked out, without uncommitted changes. The root has its own namespaces for processes and
# mounts, so that no process or mount is left when this ends, even if it is killed. It uses the
# host's network, its certificates, and the mirror in its /etc/apt. Logs are kept in
# build-releases. The last line is `N passed, N failed`; each command counts as one.
set -euo pipefail
shopt -s nullglob

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
source deploy/packages.sh

declare -A codename=([12]=bookworm [13]=trixie)
releases=() commands=() users=()
for word in "$@"; do
    case $word in
    12 | 13) releases+=("$word") ;;
    deploy | tests) commands+=("$word") ;;
    user | root) users+=("$word") ;;
    *) sed -n 2,9p "$0" >&2; exit 2 ;;
    esac
done
[ ${#releases[@]} -gt 0 ] || releases=(12 13)
[ ${#commands[@]} -gt 0 ] || commands=(deploy tests)
[ ${#users[@]} -gt 0 ] || users=(user)
if [ "$(id -u)" -ne 0 ]; then
    echo "tests/releases.sh: root privileges are needed to make a root; start it with sudo" >&2
    exit 2
fi
source tests/support/shell/roots.sh

logs=$top/build-releases
mkdir -p "$logs"

make_release() { # ROOT RELEASE
    make_root "$1" "${codename[$2]}" sudo
    chroot "$1" useradd --create-home --shell /bin/bash user
    echo 'user ALL=(ALL) NOPASSWD: ALL' >"$1/etc/sudoers.d/user"
}

# --- the commands ------------------------------------------------------------------------

declare -A command_of=([deploy]=tests/support/shell/try_deploy.sh [tests]=tests/run.sh)
passed=0 failed=0

# Runs one command, and counts and prints its result.
try() { # ROOT RELEASE USER COMMAND
    local name="debian-$2-$3-$4" start=$SECONDS word=passed
    echo "$name: started, its log is $logs/$name.log"
    if inside "$1" "$3" "$(home_of "$3")/runcast" "${command_of[$4]}" >"$logs/$name.log" 2>&1 </dev/null; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) word=FAILED
    fi
    rm -rf "${logs:?}/$name"
    if [ "$4" = tests ]; then
        cp -r "$1$(home_of "$3")/runcast/build-asan/log" "$logs/$name" || true
    fi
    echo "$name: $word, $((SECONDS - start)) s"
    grep '^not run: ' "$logs/$name.log" || true
    tail -n 1 "$logs/$name.log"
}

try_all() { # RELEASE USER
    local root="$roots/debian-$1-$2" command
    if ! make_release "$root" "$1" >"$logs/debian-$1.log" 2>&1; then
        failed=$((failed + ${#commands[@]}))
        echo "debian-$1: cannot make the root, see $logs/debian-$1.log"
        return
    fi
    git clone --quiet "$top" "$root$(home_of "$2")/runcast"
    chroot "$root" chown -R "$2:" "$(home_of "$2")/runcast"
    for command in "${commands[@]}"; do
        try "$root" "$1" "$2" "$command"
    done
    rm -rf --one-file-system "$root"
}

for release in "${releases[@]}"; do
    for user in "${users[@]}"; do
        try_all "$release" "$user"
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
