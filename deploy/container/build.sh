#!/usr/bin/env bash
# Builds the container image of the gateway, as an archive for Docker and Podman:
#
#   deploy/container/build.sh [FOLDER [PROGRAM]]
#
#   FOLDER                                    default: build-container
#   PROGRAM                                   a program that is already built; default: builds it
#
#   runcast-VERSION-image-ARCH.tar.gz         zcat … | docker load, zcat … | podman load
#
# The image contains the program, the libraries that it loads, time zones and certificates, and nothing
# else: no shell, no package manager. buildah assembles it from this machine's files, without a daemon
# and without a base image. The file runcast-*.spdx.json of deploy/release.sh lists the libraries. The
# same commit gives the same layer on the same release of Debian.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$top"
source deploy/packages.sh
source deploy/build.sh
[ $# -le 2 ] || { sed -n 2,8p "$0" >&2; exit 2; }

install_missing "${build_packages[@]}" "${container_packages[@]}"
program=${2:-build/runcast}
[ $# -eq 2 ] || build_programs "$top/build" runcast

version=$(sed -n 's/^project(runcast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
arch=$(dpkg --print-architecture)
time=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)
description="Gateway of background tasks. Deployed tasks execute elsewhere: runcast supervise"
user=65532 # the id that images without other users commonly use
out=${1:-build-container}
mkdir -p "$out"
archive=$(cd "$out" && pwd)/runcast-$version-image-$arch.tar.gz
work=$(mktemp -d "${TMPDIR:-/tmp}/runcast-container.XXXXXX")
root=$work/root container=
finish() {
    [ -z "$container" ] || buildah_here rm "$container" >/dev/null
    [ -z "$container" ] || buildah_here rmi --all --force >/dev/null
    rm -rf "$work"
}
trap finish EXIT

# Runs buildah with its own storage, so that it neither reads nor changes other images on the machine.
buildah_here() { # WORD…
    BUILDAH_FORMAT=docker buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}

# Adds a file at the same path. If it is a symbolic link, its target is added instead of the link.
add_file() { # PATH
    local target
    target=$(readlink -f "$1")
    install -D -m "$(stat -c %a "$target")" "$target" "$root$1"
}

# The libraries that the program loads, and those that the C library loads for name lookups.
add_libraries() {
    local path
    for path in $(ldd "$program" | grep -o '/[^ ]*'); do
        add_file "$path"
    done
    for path in /lib/*-linux-gnu/libnss_{files,dns}.so.2 /lib/*-linux-gnu/libresolv.so.2; do
        add_file "$path"
    done
}

add_files() {
    install -D -m 755 --strip "$program" "$root/usr/bin/runcast"
    add_libraries
    mkdir -p "$root/usr/share" "$root/etc/ssl/certs"
    cp -r /usr/share/zoneinfo "$root/usr/share/zoneinfo"
    rm -rf "$root/usr/share/zoneinfo/"{right,posix}
    add_file /etc/ssl/certs/ca-certificates.crt
    install -D -m 644 LICENSE "$root/usr/share/doc/runcast/LICENSE"
    printf 'root:x:0:0::/:\nruncast:x:%s:%s::/data:\n' "$user" "$user" >"$root/etc/passwd"
    printf 'root:x:0:\nruncast:x:%s:\n' "$user" >"$root/etc/group"
    printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
    install -d "$root"/{proc,dev,sys} # mount points for the engine, since the root may be read-only
    install -d -m 700 "$root/data"
    install -d -m 1777 "$root/tmp"
    chown "$user:$user" "$root/data"
    find "$root" -exec touch --no-dereference --date "@$time" {} +
}

make_image() {
    container=$(buildah_here from scratch)
    tar --create --file "$work/root.tar" --directory "$root" --sort=name --numeric-owner .
    buildah_here add --quiet "$container" "$work/root.tar" / >/dev/null # copying would give all to root
    buildah_here config --user "$user:$user" --workingdir / --volume /data --port 3030/tcp \
        --entrypoint '["/usr/bin/runcast"]' --cmd '' --stop-signal SIGTERM \
        --healthcheck 'CMD /usr/bin/runcast health' --healthcheck-start-period 60s \
        --env RUNCAST_LISTEN=0.0.0.0:3030 \
        --label org.opencontainers.image.title=runcast \
        --label "org.opencontainers.image.description=$description" \
        --label "org.opencontainers.image.version=$version" \
        --label org.opencontainers.image.licenses=Apache-2.0 "$container"
    buildah_here commit --quiet --timestamp "$time" "$container" \
        "runcast:$version" >/dev/null
    buildah_here push --quiet "runcast:$version" "docker-archive:$work/image.tar:runcast:$version"
    gzip -nc "$work/image.tar" >"$archive"
}

mkdir "$root"
add_files
make_image
echo "$archive ($(du -h "$archive" | cut -f 1))"
