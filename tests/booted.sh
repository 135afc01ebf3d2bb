#!/usr/bin/env bash
# Tests the packages on booted systems of each release of Debian, with systemd as their first process:
#
#   tests/booted.sh [12|13 …]                  default: both
#
# For each release it makes a root folder with the tools for building. There deploy/release.sh builds the
# packages from the source archive, twice, since both builds must give the same bytes; lintian checks them.
# Then a bare root boots (systemd-nspawn, without network), in which tests/support/shell/booted_tests.sh
# installs, reloads, hangs, upgrades, executes, removes and purges. It tests the commit that is checked out,
# without uncommitted changes. Each release takes ten minutes and 3 GB of ${TMPDIR:-/tmp}. Logs and packages
# are kept in build-booted. The last line is `N passed, N failed`.
set -euo pipefail
shopt -s nullglob

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
source deploy/packages.sh

declare -A codename=([12]=bookworm [13]=trixie)
releases=()
for word in "$@"; do
    case $word in
    12 | 13) releases+=("$word") ;;
    *) sed -n 2,4p "$0" >&2; exit 2 ;;
    esac
done
[ ${#releases[@]} -gt 0 ] || releases=(12 13)
if [ "$(id -u)" -ne 0 ]; then
    echo "tests/booted.sh: root privileges are needed to boot a root; start it with sudo" >&2
    exit 2
fi
source tests/support/shell/roots.sh
install_missing systemd-container

logs=$top/build-booted
mkdir -p "$logs"
passed=0 failed=0

# Runs a command as a test, which passes if the status is 0.
try() { # NAME COMMAND…
    local name=$1 start=$SECONDS word=ok
    shift
    if "$@" >"$logs/$name.log" 2>&1 </dev/null; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) word="NOT OK, see $logs/$name.log"
    fi
    echo "$name: $word, $((SECONDS - start)) s"
    [ "$word" = ok ]
}

# Prints the packages that deploy/packages.sh needs on the root's release.
packages_of() { # ROOT
    chroot "$1" bash -c 'source /srv/runcast/deploy/packages.sh
        echo "${build_packages[@]}" "${release_packages[@]}" lintian'
}

make_builder() { # ROOT RELEASE
    make_root "$1" "${codename[$2]}" && mkdir "$1/srv/runcast" &&
        tar -C "$1/srv/runcast" --strip-components=1 -xf "$roots"/sources/*.tar.gz &&
        chroot "$1" apt-get -qq -y --no-install-recommends install $(packages_of "$1")
}

make_packages() { # ROOT
    inside "$1" root /srv/runcast deploy/release.sh /srv/one &&
        inside "$1" root /srv/runcast deploy/release.sh /srv/two
}

are_the_same() { # ROOT
    diff -r -x '*.buildinfo' -x '*.changes' "$1/srv/one" "$1/srv/two" # these files contain times
}

lintian_is_silent() { # ROOT
    chroot "$1" sh -c 'lintian --allow-root --fail-on error,warning /srv/one/debian/*.changes'
}

# Makes the same package again with a newer version, for the test of an upgrade.
make_next() { # ROOT
    chroot "$1" sh -ec '
        dpkg-deb -R /srv/one/debian/runcast_*.deb /srv/next
        sed -i "s/^Version: .*/&+next/" /srv/next/DEBIAN/control
        dpkg-deb --root-owner-group -b /srv/next /srv/runcast-next.deb'
}

# Makes the root that boots. It has no network then, so the packages that it will install are downloaded here.
make_booted() { # ROOT RELEASE BUILDER
    make_root "$1" "${codename[$2]}" systemd systemd-sysv dbus curl python3 man-db nodejs &&
        rm "$1/usr/sbin/policy-rc.d" &&
        cp "$3"/srv/one/debian/runcast_*.deb "$1/srv/runcast.deb" &&
        cp "$3/srv/runcast-next.deb" "$1/srv/" &&
        cp tests/support/shell/booted_tests.sh tests/support/python/busy_clients.py "$1/srv/" &&
        node tests/support/js/write_fake_bundle.mjs "$1/srv/bundle" /var/lib/runcast-supervise/events &&
        chroot "$1" apt-get -qq -y --no-install-recommends --download-only install /srv/runcast.deb &&
        cat >"$1/etc/systemd/system/booted-tests.service" <<END &&
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash /srv/booted_tests.sh
StandardOutput=append:/srv/tests.out
StandardError=append:/srv/tests.err
ExecStopPost=/bin/systemctl poweroff --force
[Install]
WantedBy=default.target
END
        chroot "$1" systemctl enable booted-tests.service
}

boot() { # ROOT
    apart env SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout --kill-after=10 900 systemd-nspawn --quiet --boot \
        --directory="$1" --private-network --register=no --keep-unit --console=pipe
}

# Counts the results of the tests, and prints those that failed.
count() { # RELEASE ROOT
    local out=$logs/debian-$1.tests
    cp "$2/srv/tests.out" "$out" 2>/dev/null || : >"$out"
    cp "$2/srv/tests.err" "$out.err" 2>/dev/null || true
    passed=$((passed + $(grep -c '^ok ' "$out" || true)))
    failed=$((failed + $(grep -c '^not ok ' "$out" || true)))
    grep -A8 '^not ok ' "$out" || true
    if ! grep -q '^done$' "$out"; then
        failed=$((failed + 1))
        echo "debian-$1: the tests did not finish"
        tail -n 20 "$out" "$out.err"
    fi
}

try sources deploy/release.sh "$roots/sources" sources || releases=()
for release in "${releases[@]}"; do
    builder=$roots/builder-$release booted=$roots/booted-$release name=debian-$release
    try "$name-builder" make_builder "$builder" "$release" || continue
    try "$name-packages" make_packages "$builder" || continue
    rm -rf "${logs:?}/$name"
    cp -r "$builder/srv/one" "$logs/$name"
    try "$name-same-bytes" are_the_same "$builder" || true
    try "$name-lintian" lintian_is_silent "$builder" || true
    try "$name-next" make_next "$builder" || continue
    try "$name-root" make_booted "$booted" "$release" "$builder" || continue
    rm -rf --one-file-system "$builder"
    boot "$booted" >"$logs/$name-boot.log" 2>&1 </dev/null || true # the tests report how it went
    count "$release" "$booted"
    rm -rf --one-file-system "$booted"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
