# packages.sh - lists the Debian packages for building and testing, and installs missing ones.
#
# Sourced by scripts that build or test. Does not call apt when nothing is missing.

build_packages=(gcc libc6-dev cmake ninja-build pkg-config libuv1-dev libjansson-dev
    libsqlite3-dev libpq-dev libssl-dev libdeflate-dev libwslay-dev libinih-dev libarchive-dev
    zlib1g-dev liburing-dev python3 ca-certificates tzdata)

test_packages=(clang lld codespell libcmocka-dev curl git python3-websockets chromium openssl
    nginx haproxy caddy prometheus sqlite3 postgresql pgbouncer locales systemd scdoc man-db mandoc bash-completion zsh
    fish debhelper)
command -v kubectl >/dev/null || test_packages+=(kubernetes-client)

# Packages for deploy/release.sh, in addition to those for building.
release_packages=(build-essential debhelper dpkg-dev fakeroot git gzip scdoc)
# Packages for deploy/container/build.sh, in addition to those for building.
container_packages=(buildah tzdata ca-certificates)

# Node.js and npm build the dashboard. If they are installed in other versions than Debian's, these are used.
# A source archive contains the built dashboard, so it needs neither.
if [ ! -e "$(dirname "${BASH_SOURCE[0]}")/../src/web/dashboard/built" ]; then
    command -v node >/dev/null || build_packages+=(nodejs)
    command -v npm >/dev/null || build_packages+=(npm)
fi

# Debian 13 has llhttp as a library, another name for the C part of msgpack, and the older names of time
# zones in a separate package. Debian 12 has the version of clang's tools that formats and checks our
# sources.
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
        echo "packages are missing: become root or install sudo, then start this again" >&2
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
# lock, as on a fresh machine that installs its updates. DPkg::Lock::Timeout alone would wait without
# output, and only for the lock of dpkg, not for those of package lists and of downloads.
with_apt_lock() {
    local end=$((SECONDS + 600)) waits='' said
    until said=$(LC_ALL=C "$@" 2>&1); do
        if [[ $said != *"Could not get lock"* && $said != *"Unable to lock"* ]] ||
            [ "$SECONDS" -ge "$end" ]; then
            echo "$said" >&2
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

# install_missing PACKAGE…: lists missing packages and installs them; silent when nothing is missing.
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
