# roots.sh - roots of releases of Debian, in which scripts try things as on new machines.
#
# Sourced after deploy/packages.sh by scripts that root starts. They get $roots, a temporary folder for
# roots, which is removed at the end, after every process in them was killed:
#
#   make_root "$roots/r" bookworm sudo curl      installed by mmdebstrap
#   inside "$roots/r" root /folder command…      in namespaces of its own for processes and mounts
#
# The network is the host's, and so are the mirror (/etc/apt), certificates and npm's settings.

install_missing mmdebstrap

roots=$(mktemp -d "${TMPDIR:-/tmp}/runcast-roots.XXXXXX")
chmod 755 "$roots"
running=
finish() {
    [ -z "$running" ] || kill -KILL "$running" 2>/dev/null || true
    [ -z "$running" ] || wait "$running" 2>/dev/null || true
    rm -rf --one-file-system "$roots"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The name that the host's apt has for the mirror whose address ends in NAME.
mirror() { # NAME
    local found
    found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
        sed 's/#.*//' | grep -oE "https?://[^ ]+/$1/?( |$)" | head -n 1) || true
    echo "${found:-http://deb.debian.org/$1}"
}

# Runs a command that is killed, and whose mounts disappear, when this script exits.
apart() { # COMMAND…
    local status=0
    unshare --mount --pid --fork --kill-child "$@" &
    running=$!
    wait "$running" || status=$?
    running=
    return "$status"
}

make_root() { # ROOT CODENAME PACKAGE…
    local root=$1 name=$2 debian security file
    shift 2
    debian=$(mirror debian) security=$(mirror debian-security)
    mmdebstrap --variant=minbase --include="ca-certificates $*" "$name" "$root" \
        "deb $debian $name main" "deb $debian $name-updates main" \
        "deb $security $name-security main" || return
    apt-config dump | grep -E '^Acquire::(http|https|Check-Date|Check-Valid-Until)\b' \
        >"$root/etc/apt/apt.conf.d/99host" || true
    for file in /usr/local/share/ca-certificates/*.crt /etc/npmrc; do
        cp "$file" "$root$file" || true
    done
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/hasty" # a loss of power may lose it
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service is started
    chmod 755 "$root/usr/sbin/policy-rc.d"
    chroot "$root" update-ca-certificates && chroot "$root" apt-get -qq update
}

# Runs a command in a folder of the root, as one of its users, with a bare environment.
inside() { # ROOT USER FOLDER COMMAND…
    apart bash -c '
        mount -t proc proc "$0/proc"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
        mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
        chroot --userspec="$1:$1" "$0" env -i "HOME=$2" "USER=$1" LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
            bash -c "cd \"\$0\" && exec \"\$@\"" "${@:3}"
        exit $? # not exec: the first process must stay a shell, which reaps orphans
    ' "$1" "$2" "$(home_of "$2")" "${@:3}"
}

home_of() { # USER
    if [ "$1" = root ]; then echo /root; else echo "/home/$1"; fi
}
