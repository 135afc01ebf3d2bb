#!/usr/bin/env bash
# Builds the files of a release from the commit that is checked out:
#
#   deploy/release.sh [FOLDER [sources]]       default: build-release
#
#   runcast-VERSION.tar.gz                     the sources, with the built dashboard: building them
#                                              needs neither npm nor a network
#   debian/                                    packages for this release of Debian, and their
#                                              source package
#   runcast-VERSION-debianN-ARCH.tar.gz        the program alone, without a package
#   runcast-VERSION-debianN-ARCH.spdx.json     the parts of the program (SPDX 2.3)
#   SHA256SUMS
#
# The packages are built from the source archive, without network access if the kernel allows that. The
# same commit gives the same bytes on the same release of Debian, since all times are those of the commit.
# For another release or processor run this on such a machine, in a clone or in the unpacked source
# archive, which needs no npm. "sources" builds only that archive.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
source deploy/packages.sh
if [ $# -gt 2 ] || [ "${2:-sources}" != sources ]; then
    sed -n 2,4p "$0" >&2
    exit 2
fi

install_missing "${build_packages[@]}" "${release_packages[@]}"

version=$(sed -n 's/^project(runcast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
debian=$(. /etc/os-release && echo "${VERSION_ID%%.*}")
arch=$(dpkg --print-architecture)
name=runcast-$version
program=$name-debian$debian-$arch
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
umask 022

out=${1:-build-release}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/runcast-release.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Packs a folder of $work. The bytes of the archive depend only on the folder's content.
pack() { # FOLDER ARCHIVE
    tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
        --numeric-owner -c "$1" | gzip -9n >"$2"
}

# In an unpacked source archive the dashboard is already built, so its files are packed again.
make_sources() {
    mkdir "$work/$name"
    if [ ! -e .git ]; then
        tar --exclude='./build*' -c . | tar -C "$work/$name" -x
        pack "$name" "$out/$name.tar.gz"
        return
    fi
    git archive HEAD | tar -C "$work/$name" -x
    (cd "$work/$name/src/web/dashboard" && npm ci --ignore-scripts --no-audit --no-fund --silent &&
        node build.mjs built && rm -rf node_modules)
    pack "$name" "$out/$name.tar.gz"
}

# Runs a command without network access if the kernel allows that, otherwise with a warning.
offline() { # COMMAND…
    if unshare --net --map-root-user true 2>/dev/null; then
        unshare --net --map-root-user "$@"
    else
        echo "deploy/release.sh: cannot disable the network; the packages are built with network access" >&2
        "$@"
    fi
}

# The version of a package contains the release of Debian, so that an upgrade of Debian also upgrades
# to the package for the next release.
make_packages() {
    mv "$work/$name" "$work/build"
    cp "$out/$name.tar.gz" "$work/runcast_$version.orig.tar.gz"
    cp -r "$work/build/deploy/debian" "$work/build/debian"
    sed -i "1s/)/~deb$debian)/" "$work/build/debian/changelog"
    (cd "$work/build" && offline dpkg-buildpackage --no-sign --build=full)
    rm -rf "$out/debian"
    mkdir "$out/debian"
    cp "$work"/runcast*_* "$out/debian"
}

make_program() {
    local root=$work/$program
    mkdir "$root"
    dpkg-deb -x "$work"/runcast_*.deb "$work/unpacked"
    cp "$work/unpacked/usr/bin/runcast" "$work/build/"{README.md,LICENSE} "$root"
    pack "$program" "$out/$program.tar.gz"
    python3 -B deploy/sbom.py "$root/runcast" src/web/dashboard/package-lock.json "$name" \
        >"$out/$program.spdx.json"
}

make_sources
[ $# -lt 2 ] || exit 0
make_packages
make_program
cd "$out"
find . -type f ! -name SHA256SUMS ! -name '*.buildinfo' ! -name '*.changes' -printf '%P\0' | sort -z | xargs -0 sha256sum >"$work/sums"
cp "$work/sums" SHA256SUMS
cat SHA256SUMS
