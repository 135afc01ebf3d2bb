# packages.sh - lists the Debian packages for building and testing, and installs missing ones.
#
# Sourced by scripts that build or test. Calls apt only if a package is missing.

build_packages=(gcc libc6-dev cmake ninja-build pkg-config libuv1-dev libjansson-dev
    libsqlite3-dev libpq-dev libssl-dev libdeflate-dev libwslay-dev libinih-dev libarchive-dev
    zlib1g-dev liburing-dev python3 ca-certificates tzdata)

test_packages=(clang lld codespell libcmocka-dev curl git python3-websockets chromium-headless-shell openssl
    nginx haproxy caddy prometheus sqlite3 postgresql pgbouncer locales systemd scdoc man-db mandoc bash-completion zsh
    fish debhelper)
command -v kubectl >/dev/null || test_packages+=(kubernetes-client)

# Packages for deploy/release.sh, in addition to those for building.
release_packages=(build-essential debhelper dpkg-dev fakeroot git gzip scdoc)
# Packages for deploy/container/build.sh, in addition to those for building.
container_packages=(buildah tzdata ca-certificates)

# Node.js and npm build the dashboard. Versions that are already installed are used, even if they are not
# Debian's. A source archive contains the built dashboard, so it needs neither.
if [ ! -e "$(dirname "${BASH_SOURCE[0]}")/../src/web/dashboard/built" ]; then
    command -v node >/dev/null || build_packages+=(nodejs)
    command -v npm >/dev/null || build_packages+=(npm)
fi

# Debian 13 packages llhttp as a library, names the C part of msgpack differently, and has the older names
# of time zones in a separate package. Only Debian 12 has version 14 of clang-format and clang-tidy, which
# format and check our sources.
if [ "$(. /etc/os-release && echo "${VERSION_ID:-0}" | cut -d. -f1)" -ge 13 ]; then
    build_packages+=(libllhttp-dev libmsgpack-c-dev tzdata-legacy)
    test_packages+=(libclang-rt-dev)
else
    build_packages+=(node-llhttp libmsgpack-dev)
    test_packages+=(libclang-rt-14-dev clang-format-14 clang-tidy-14)
fi

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        env "$@"
    elif command -v sudo >/dev/null; then
        sudo env "$@"
    else
        echo "packages are missing: become root or install sudo, then run this again" >&2
        return 1
    fi
}

# Keeps Debian's PostgreSQL from creating and starting a database when it is installed, since tests start
# their own.
main_cluster=/etc/postgresql-common/createcluster.d/without-main.conf
without_main_cluster() { # COMMAND…
    local status=0
    as_root sh -ec 'mkdir -p "$(dirname "$0")"; echo "create_main_cluster = false" >"$0"' "$main_cluster"
    "$@" || status=$?
    as_root rm -f "$main_cluster"
    return "$status"
}

# with_apt_lock COMMAND…: repeats a command of apt for at most ten minutes while another apt holds a
# lock, as on a new machine that installs its updates. DPkg::Lock::Timeout alone would wait without
# output, and only for the lock of dpkg, not for the locks of package lists and downloads.
with_apt_lock() {
    local end=$((SECONDS + 600)) waits='' output
    until output=$(LC_ALL=C "$@" 2>&1); do
        if [[ $output != *"Could not get lock"* && $output != *"Unable to lock"* ]] ||
            [ "$SECONDS" -ge "$end" ]; then
            echo "$output" >&2
            return 1
        fi
        [ -n "$waits" ] || echo "waiting for another apt to finish, for at most 10 minutes" >&2
        waits=1
        sleep 5
    done
}

apt_get() { # WORD…
    as_root LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=5 "$@"
}

# install_missing PACKAGE…: installs missing packages and prints their names; silent if none is missing.
install_missing() {
    local missing=() package
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "installing Debian packages: ${missing[*]}" >&2
    with_apt_lock apt_get update
    without_main_cluster with_apt_lock apt_get install -y --no-install-recommends "${missing[@]}"
}
