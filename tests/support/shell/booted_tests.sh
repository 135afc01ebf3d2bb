#!/usr/bin/env bash
# Tests that tests/booted.sh runs in a booted system: installs /srv/runcast.deb, and then the next version,
# /srv/runcast-next.deb. Prints a line "ok NAME" or "not ok NAME" for each, with the reason below it, and
# "done" at the end.
set -uo pipefail
cd /srv
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
address=127.0.0.1:3030
config=/etc/runcast/runcast.conf

# --- helpers ---------------------------------------------------------------------------

test_that() { # NAME FUNCTION
    local said
    if said=$(set -e; "$2" 2>&1); then
        echo "ok $1"
    else
        printf 'not ok %s\n%s\n' "$1" "$(tail -n 7 <<<"$said" | sed 's/^/    /')"
    fi
}

fail() {
    echo "$*"
    exit 1
}

equal() { # WANTED GOT WHAT
    [ "$1" = "$2" ] || fail "$3: '$2', not '$1'"
}

# Waits until a command succeeds, for two minutes.
until_it() { # COMMAND…
    local i
    for i in $(seq 1200); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    fail "in vain: $*"
}

property() { # UNIT NAME
    systemctl show --property="$2" --value "$1"
}

answers() { # PATH
    curl -fsS --max-time 5 "http://$address$1"
}

trigger() { # TASK
    curl -fsS -X POST "http://$address/api/v1/tasks/$1/trigger" -H "Authorization: Bearer $(key)" \
        -H 'content-type: application/json' -d '{"payload":{}}' | grep -o 'run_[a-z0-9]*' | head -n 1
}

is_there() { # RUN
    curl -fsS -o /dev/null "http://$address/api/v3/runs/$1" -H "Authorization: Bearer $(key)"
}

key() {
    runuser -u runcast -- runcast keys --data /var/lib/runcast | grep -o 'tr_prod_[A-Za-z0-9]*' | head -n 1
}

with_config() { # LINE…
    without_config
    printf '%s\n' "$@" >>"$config"
}

without_config() {
    cp /srv/kept.conf "$config"
}

journal_says() { # TEXT
    journalctl --no-pager -u runcast -u runcast-supervise | grep -qF -- "$1"
}

begin_clients() {
    rm -f /srv/clients.busy
    python3 /srv/busy_clients.py "$address" "$(key)" 8 >/srv/clients.json 2>/srv/clients.busy &
    clients=$!
    until_it grep -q busy /srv/clients.busy
}

# Stops the clients. Fails if a request was refused, or was cut and MAY_BE_CUT is not yes.
end_clients() { # MAY_BE_CUT
    kill -TERM "$clients"
    wait "$clients"
    python3 - "$1" <<'END'
import json, sys
outcomes = json.load(open("/srv/clients.json"))["outcomes"]
print(outcomes)
allowed = {"200", "cut"} if sys.argv[1] == "yes" else {"200"}
sys.exit(0 if outcomes.get("200", 0) > 100 and set(outcomes) <= allowed else 1)
END
}

acknowledged_are_there() {
    local run
    for run in $(python3 -c 'import json; print(*json.load(open("/srv/clients.json"))["last"][::50])'); do
        is_there "$run" || fail "$run was acknowledged and is not there"
    done
}

# --- tests -----------------------------------------------------------------------------

installs() {
    apt-get -y --no-install-recommends install /srv/runcast.deb
    until_it systemctl is-active --quiet runcast.service
    systemctl is-active --quiet runcast.socket
    systemctl is-enabled --quiet runcast.service runcast.socket
    cp "$config" /srv/kept.conf
    ! systemctl is-enabled --quiet runcast-supervise.service || fail "the supervise role is enabled"
}

is_ready_when_it_says_so() {
    answers /healthz
    answers /readyz
    [ -n "$(property runcast StatusText)" ] || fail "no status"
}

is_confined() {
    local pid stat
    pid=$(property runcast MainPID)
    stat=$(cat "/proc/$pid/status")
    grep -q "^NoNewPrivs:.1" <<<"$stat" || fail "it may get privileges"
    grep -q "^Seccomp:.2" <<<"$stat" || fail "it has no filter of system calls"
    grep -q "^CapEff:.0000000000000000" <<<"$stat" || fail "it has capabilities"
    equal runcast "$(ps -o user= -p "$pid" 2>/dev/null || stat -c %U "/proc/$pid")" "its user"
    equal "700 runcast" "$(stat -c '%a %U' /var/lib/runcast)" "the data directory"
    systemd-analyze security --no-pager --threshold=20 runcast.service
}

triggers_a_run() {
    local run
    run=$(trigger first)
    is_there "$run"
    echo "$run" >/srv/first.run
}

has_pages() {
    local page
    for page in runcast.1 runcast.conf.5 runcast-protocol.7; do
        man --warnings -l "$(man -w "${page##*.}" "${page%.*}")" 2>&1 >/dev/null | grep . && fail "$page"
    done
    true
}

reloads_its_settings() {
    local pid
    pid=$(property runcast MainPID)
    with_config "log-level = debug" "rate-limit = 100000"
    systemctl reload runcast
    until_it journal_says '"action":"reload","result":"ok"'
    without_config
    systemctl reload runcast
    equal "$pid" "$(property runcast MainPID)" "its process after two reloads"
}

refuses_what_is_wrong() {
    with_config "log-level = loud"
    ! systemctl reload runcast || fail "a setting that is no setting was reloaded"
    without_config
    with_config "branches = 7" "dev-ttl = 7m"
    systemctl reload runcast
    refused() { property runcast StatusText | grep -q "dev-ttl"; }
    until_it refused
    without_config
    systemctl reload runcast
    answers /readyz
}

is_killed_when_it_hangs() {
    local pid
    mkdir -p /etc/systemd/system/runcast.service.d
    printf '[Service]\nWatchdogSec=3\n' >/etc/systemd/system/runcast.service.d/watchdog.conf
    systemctl daemon-reload
    systemctl restart runcast
    pid=$(property runcast MainPID)
    kill -STOP "$pid"
    another() { [ "$(property runcast MainPID)" != "$pid" ] && answers /readyz; }
    until_it another
    journal_says "Watchdog timeout"
    is_there "$(cat /srv/first.run)"
    rm -r /etc/systemd/system/runcast.service.d
    systemctl daemon-reload
    systemctl restart runcast
}

refuses_nobody_in_a_restart() {
    local i
    begin_clients
    for i in 1 2 3; do
        systemctl restart runcast
    done
    end_clients no
    acknowledged_are_there
}

refuses_nobody_when_it_is_killed() {
    begin_clients
    systemctl kill --signal=KILL runcast
    until_it answers /readyz
    end_clients yes
    acknowledged_are_there
}

takes_secrets_as_credentials() {
    local pid
    (umask 077 && echo "a-secret-of-the-metrics" >/etc/runcast/credentials/metrics-token)
    systemctl restart runcast
    curl -fsS -o /dev/null "http://$address/metrics" -H "Authorization: Bearer a-secret-of-the-metrics"
    ! curl -fsS -o /dev/null "http://$address/metrics" 2>/dev/null || fail "the metrics are everybody's"
    pid=$(property runcast MainPID)
    ! tr '\0' '\n' <"/proc/$pid/environ" | grep -q a-secret || fail "the secret is in its environment"
    rm /etc/runcast/credentials/metrics-token
    systemctl restart runcast
}

supervises() {
    local pid
    ! systemctl start runcast-supervise || fail "it starts without a token"
    (umask 077 && runuser -u runcast -- runcast worker-token create --data /var/lib/runcast |
        grep -o 'tr_[A-Za-z0-9_]*' | head -n 1 >/etc/runcast/supervise/worker-token)
    systemctl enable --now runcast-supervise
    waits() { curl -fsS --unix-socket /var/lib/runcast/metrics.sock http://localhost/metrics |
        grep -q '^runcast_waiting_workers [1-9]'; }
    until_it waits
    pid=$(property runcast-supervise MainPID)
    systemctl restart runcast
    equal "$pid" "$(property runcast-supervise MainPID)" "its process, after a restart of the gateway"
    systemd-analyze security --no-pager runcast-supervise.service | tail -n 1 >>/srv/scores
}

# The bundle's tasks write their events into a folder that the unit lets them write to. Deployed versions need
# Node 20; on a release with an older one, the test reports that.
executes_what_is_deployed() {
    local events=/var/lib/runcast-supervise/events run user node
    node=$(node -p 'process.versions.node.split(".")[0]')
    export TRIGGER_API_URL=http://$address TRIGGER_SECRET_KEY=$(key)
    if [ "$node" -lt 20 ]; then
        ! runcast deploy /srv/bundle >deploy.out 2>&1 || fail "Node $node builds it"
        grep -q "versions need Node 20 or newer" deploy.out || fail "$(cat deploy.out)"
        return
    fi
    mkdir -p -m 1777 "$events" && chmod 1777 "$events"
    runcast deploy /srv/bundle | grep "is deployed, and the current one of prod"
    run=$(curl -fsS -X POST "http://$address/api/v1/tasks/task/trigger" -H "Authorization: Bearer $(key)" \
        -H 'content-type: application/json' -d '{"payload":{"do":"finish"}}' | grep -o 'run_[a-z0-9]*' | head -n 1)
    is_completed() {
        curl -fsS "http://$address/api/v3/runs/$run" -H "Authorization: Bearer $(key)" | grep -q '"status":"COMPLETED"'
    }
    until_it is_completed
    user=$(stat -c %U "$events"/* | sort -u)
    equal runcast-runner "$user" "who executes it"
    rm -r "$events"
}

upgrades_without_refusing_anybody() {
    local pid supervise
    pid=$(property runcast MainPID) supervise=$(property runcast-supervise MainPID)
    begin_clients
    apt-get -y install /srv/runcast-next.deb
    until_it answers /readyz
    end_clients no
    [ "$(property runcast MainPID)" != "$pid" ] || fail "the old process goes on"
    equal "$supervise" "$(property runcast-supervise MainPID)" "the supervise role's process"
    acknowledged_are_there
    is_there "$(cat /srv/first.run)"
}

is_removed_and_keeps_its_data() {
    apt-get -y remove runcast
    ! systemctl is-active --quiet runcast.service runcast.socket runcast-supervise.service || fail "it goes on"
    ! answers /healthz || fail "somebody answers"
    [ -e /var/lib/runcast/runcast.db ] && [ -e "$config" ]
    apt-get -y --no-install-recommends install /srv/runcast-next.deb
    until_it answers /readyz
    is_there "$(cat /srv/first.run)"
}

is_purged() {
    apt-get -y purge runcast
    local left
    left=$(find / -xdev -name '*runcast*' -not -path '/srv/*' -not -path '/proc/*' -not -path '/sys/*' \
        -not -path '/var/log/*' -not -path '/var/cache/*' -not -path '/run/*' -not -path '/var/tmp/*' -not -path '/tmp/*')
    equal "" "$left" "what is left"
}

test_that "apt installs it, and it runs" installs
test_that "it is ready when it says so" is_ready_when_it_says_so
test_that "it is confined" is_confined
test_that "it takes a run" triggers_a_run
test_that "it has its manual pages" has_pages
test_that "it reads its settings again" reloads_its_settings
test_that "it refuses wrong settings, and says so" refuses_what_is_wrong
test_that "it is killed and started anew when it hangs" is_killed_when_it_hangs
test_that "a restart refuses nobody" refuses_nobody_in_a_restart
test_that "a kill refuses nobody, and loses no run" refuses_nobody_when_it_is_killed
test_that "secrets are credentials" takes_secrets_as_credentials
test_that "the supervise role starts, and outlives a restart of the gateway" supervises
test_that "the supervise role builds and executes what is deployed, as a user of its own" executes_what_is_deployed
test_that "an upgrade refuses nobody, and leaves the supervise role alone" upgrades_without_refusing_anybody
test_that "it is removed, and keeps its data" is_removed_and_keeps_its_data
test_that "purged, it leaves nothing" is_purged
cp /srv/scores /srv/scores.txt 2>/dev/null
journalctl --no-pager -o short-monotonic -u runcast -u runcast-supervise -u runcast.socket >&2
echo "done"
