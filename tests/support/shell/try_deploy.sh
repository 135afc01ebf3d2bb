#!/usr/bin/env bash
# Tries deploy/run.sh like a newcomer: it installs, builds and serves a run with the key that it printed;
# the second start installs and builds nothing. Needs no more than a fresh Debian has: tests/releases.sh
# starts it where there is no curl yet.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
said=$(mktemp)
trap 'kill "${gateway:-}" 2>/dev/null || true; rm -f "$said"' EXIT

start() {
    deploy/run.sh --listen 127.0.0.1:0 >"$said" 2>&1 &
    gateway=$!
    until grep -q '"event":"ready"' "$said"; do
        kill -0 "$gateway" 2>/dev/null || { cat "$said"; echo "it did not start"; exit 1; }
        sleep 0.2
    done
    cat "$said"
}

stop() {
    kill -TERM "$gateway"
    wait "$gateway"
}

request() { # PATH KEY BODY
    local answer
    exec 3<>"/dev/tcp/127.0.0.1/${TRIGGER_API_URL##*:}"
    printf 'POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n' "$1" "$2" >&3
    printf 'Content-Length: %s\r\nConnection: close\r\n\r\n%s' "${#3}" "$3" >&3
    answer=$(cat <&3)
    exec 3>&-
    echo "$answer"
    [[ $answer == "HTTP/1.1 200 "* ]]
}

start
eval "$(grep -o 'export TRIGGER_API_URL=.*' "$said")"
request /api/v1/tasks/hello/trigger "$TRIGGER_SECRET_KEY" '{"payload": {"name": "Ada"}}'
stop

start
if grep -E '^(installing|building)|steps$' "$said"; then
    echo "the second start had something to do"
    exit 1
fi
stop
echo "deploy/run.sh works"
