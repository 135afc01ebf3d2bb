#!/usr/bin/env bash
# The commands of the README on releases of Debian that have nothing installed yet:
#
#   tests/releases.sh [12|13 …] [deploy|tests …] [user|root …]
#
#   deploy   deploy/run.sh, twice: from nothing, and when there is nothing to do
#   tests    tests/run.sh, whole (half an hour on two idle cores)
#   user     as an ordinary user who may use sudo
#   root     as root
#
# Not named: both releases, both commands, the ordinary user. Each pair of release and user
# gets a root of its own in ${TMPDIR:-/tmp} (4 GB, by debootstrap) with a clone of the commit
# that is checked out; what is not committed is not tested. The root lives in namespaces of
# its own for processes and mounts, so that nothing of it is left when this ends, however it
# ends; the network is the host's. The mirror is the one in /etc/apt of the host, and so are
# certificates. Logs are kept in build-releases. The last line says `N passed, N failed`, a
# command being one.
set -euo pipefail
shopt -s nullglob

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$top/deploy/packages.sh"

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
    echo "tests/releases.sh: only root may make a root; start it with sudo" >&2
    exit 2
fi
install_missing debootstrap

logs=$top/build-releases
mkdir -p "$logs"
folder=$(mktemp -d "${TMPDIR:-/tmp}/runcast-releases.XXXXXX")
chmod 755 "$folder"
running=
finish() {
    [ -z "$running" ] || kill -KILL "$running" 2>/dev/null || true
    [ -z "$running" ] || wait "$running" 2>/dev/null || true
    rm -rf --one-file-system "$folder"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- a root ------------------------------------------------------------------------------

# What the host's apt calls the mirror whose address ends in NAME.
mirror() { # NAME
    local found
    found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
        sed 's/#.*//' | grep -oE "https?://[^ ]+/$1/?( |$)" | head -n 1) || true
    echo "${found:-http://deb.debian.org/$1}"
}

# Runs a command that dies with this script, and whose mounts do.
apart() { # COMMAND…
    local status=0
    unshare --mount --pid --fork --kill-child "$@" &
    running=$!
    wait "$running" || status=$?
    running=
    return "$status"
}

make_root() { # ROOT RELEASE
    local root=$1 name=${codename[$2]} debian security file
    debian=$(mirror debian) security=$(mirror debian-security)
    apart debootstrap --variant=minbase --include=ca-certificates,sudo \
        "$name" "$root" "$debian" || return
    cat >"$root/etc/apt/sources.list" <<END
deb $debian $name main
deb $debian $name-updates main
deb $security $name-security main
END
    apt-config dump | grep -E '^Acquire::(http|https|Check-Date|Check-Valid-Until)\b' \
        >"$root/etc/apt/apt.conf.d/99host" || true
    for file in /usr/local/share/ca-certificates/*.crt /etc/npmrc; do
        cp "$file" "$root$file" || true
    done
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/hasty" # it may be lost with the power
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service is started
    chmod 755 "$root/usr/sbin/policy-rc.d"
    chroot "$root" update-ca-certificates
    chroot "$root" useradd --create-home --shell /bin/bash user
    echo 'user ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/user"
}

# Runs a command in the clone, as one of the users, with a bare environment.
inside() { # ROOT USER COMMAND…
    apart bash -c '
        mount -t proc proc "$0/proc"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
        mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
        chroot --userspec="$1:$1" "$0" env -i "HOME=$2" "USER=$1" LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
            bash -c "cd ~/runcast && exec \"\$@\"" bash "${@:3}"
        exit $? # not exec: the first process has to stay a shell, which buries orphans
    ' "$1" "$2" "$(home_of "$2")" "${@:3}"
}

home_of() { # USER
    if [ "$1" = root ]; then echo /root; else echo "/home/$1"; fi
}

# --- the commands ------------------------------------------------------------------------

declare -A command_of=([deploy]=tests/support/shell/try_deploy.sh [tests]=tests/run.sh)
passed=0 failed=0

# Counts one command, and says how it ended.
try() { # ROOT RELEASE USER COMMAND
    local name="debian-$2-$3-$4" start=$SECONDS word=passed
    echo "$name: started, its log is $logs/$name.log"
    if inside "$1" "$3" "${command_of[$4]}" >"$logs/$name.log" 2>&1 </dev/null; then
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
    local root="$folder/debian-$1-$2" command
    if ! make_root "$root" "$1" >"$logs/debian-$1.log" 2>&1; then
        failed=$((failed + ${#commands[@]}))
        echo "debian-$1: no root was made, see $logs/debian-$1.log"
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
