#!/usr/bin/env bash
# peers.sh - compares other servers with the gateway and the floor: the cost of a delivered message.
#
#   bench/peers.sh [BUILD] >TABLE.md       BUILD: a Release build directory (default: build)
#
# Gateway, floor and harness are built first. These install the peers:
#
#   apt-get install nginx libnginx-mod-nchan nats-server mosquitto
#   cd bench/peers && npm ci --ignore-scripts
#
# PEERS    which of them (nchan nats mosquitto socket.io ws)
# ROUNDS   how often all of them take turns; medians are printed, of costs and of their ratios to
#          eager in the same round (3)
# DURATION how long each is measured at a steady rate, in seconds (5)
# GATEWAY_PORT, FLOOR_PORT, PEER_PORT  ports of the servers (3931, 3932, 3935)
# DATA     data of the gateways, on a real disk (BUILD/bench-data)
# OUT      the JSON of every measurement (BUILD/bench-out/peers)
#
# bench/README.md explains the table. Ends with status 1 if a wanted peer is missing.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/deploy/build.sh"
source "$root/bench/servers.sh"
PATH=$PATH:/usr/sbin
read_build "$@"
rounds=${ROUNDS:-3}
seconds=${DURATION:-5}
data=${DATA:-$build/bench-data}
out=${OUT:-$build/bench-out/peers}
read -ra wanted <<<"${PEERS:-nchan nats mosquitto socket.io ws}"
gateway_port=${GATEWAY_PORT:-3931}
floor_port=${FLOOR_PORT:-3932}
peer_port=${PEER_PORT:-3935}
need_count ROUNDS "$rounds"
need_seconds DURATION "$seconds"
server_cores=0
bench_core=1
present=()
missing=()

# The measurements: a name, its title, and options of fanout.
rows=(steady-1000 full-1000 steady-10000)
declare -A title=(
    [steady-1000]="1,000, steady"
    [full-1000]="1,000, saturated"
    [steady-10000]="10,000, steady"
)
declare -A options=(
    [steady-1000]="--subscribers 1000 --rate 40 --seconds $seconds"
    [full-1000]="--subscribers 1000 --rate 400 --seconds 2 --ahead 2"
    [steady-10000]="--subscribers 10000 --rate 4 --seconds $seconds"
)

# Time between two messages at a steady rate; the others have none.
declare -A interval_us=([steady-1000]=25000 [full-1000]=1e12 [steady-10000]=250000)

debian="apt-get install"
npm="cd bench/peers && npm ci --ignore-scripts"
declare -A install=(
    [nchan]="$debian nginx libnginx-mod-nchan"
    [nats]="$debian nats-server"
    [mosquitto]="$debian mosquitto"
    [socket.io]=$npm
    [ws]=$npm
)

# Settings that differ from the defaults, or might be expected to.
declare -A settings=(
    [nchan]="one worker, 'nchan_pubsub websocket' with its buffer of 10 messages, no log"
    [nats]="without JetStream; WebSocket without TLS and compression, no log"
    [mosquitto]="MQTT 3.1.1 by WebSocket, QoS 0, no persistence, 'set_tcp_nodelay', no log"
    [socket.io]="WebSocket alone, no compression, first requests are not kept, 'io.emit'"
    [ws]="no compression, 'send' to each client of the bytes that came"
)

# For each peer: whether it is installed, its version, and how to start it on peer_port with its
# files in $work.

nginx_modules() { nginx -V 2>&1 | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p'; }
is_there_nchan() { command -v nginx >/dev/null && [ -e "$(nginx_modules)/ngx_nchan_module.so" ]; }
version_nchan() {
    local nchan nginx
    nchan=$(dpkg-query -W -f '${Version}' libnginx-mod-nchan 2>/dev/null | sed 's/^.*://; s/[+-].*//')
    nginx=$(nginx -v 2>&1 | sed 's|.*/||')
    echo "Nchan ${nchan:-of an unknown version} in nginx $nginx"
}
start_nchan() {
    cat >"$work/nginx.conf" <<END
load_module $(nginx_modules)/ngx_nchan_module.so;
daemon off;
worker_processes 1;
worker_rlimit_nofile $(ulimit -n);
error_log stderr crit;
pid $work/nginx.pid;
events { worker_connections $(ulimit -n); }
http {
    access_log off;
    client_body_temp_path $work/body;
    proxy_temp_path $work/proxy;
    fastcgi_temp_path $work/fastcgi;
    uwsgi_temp_path $work/uwsgi;
    scgi_temp_path $work/scgi;
    server {
        listen 127.0.0.1:$peer_port backlog=4096;
        location = /m {
            nchan_pubsub websocket;
            nchan_channel_id m;
        }
    }
}
END
    start_peer nginx -e stderr -p "$work" -c "$work/nginx.conf"
}

is_there_nats() { command -v nats-server >/dev/null; }
version_nats() { echo "NATS $(nats-server --version | sed 's/.*v//')"; }
start_nats() {
    cat >"$work/nats.conf" <<END
listen: "127.0.0.1:$((peer_port + 1))"
logfile: "/dev/null"
websocket { listen: "127.0.0.1:$peer_port", no_tls: true, compression: false }
END
    start_peer nats-server -c "$work/nats.conf"
}

is_there_mosquitto() { command -v mosquitto >/dev/null; }
version_mosquitto() { echo "Mosquitto $(mosquitto -h | sed -n '1s/.*version //p')"; }
# Version 2.0.11 does not start with a WebSocket listener only.
start_mosquitto() {
    cat >"$work/mosquitto.conf" <<END
listener $((peer_port + 1)) 127.0.0.1
listener $peer_port 127.0.0.1
protocol websockets
allow_anonymous true
persistence false
set_tcp_nodelay true
log_dest none
END
    start_peer mosquitto -c "$work/mosquitto.conf"
}

package_of() { echo "$root/bench/peers/node_modules/$1/package.json"; }
is_there_module() { command -v node >/dev/null && [ -e "$(package_of "$1")" ]; }
version_module() {
    local version
    version=$(node -p 'require(process.argv[1]).version' "$(package_of "$1")")
    echo "$1 $version in Node.js $(node --version | tr -d v)"
}

is_there_socket_io() { is_there_module socket.io; }
version_socket_io() { version_module socket.io; }
start_socket_io() { start_peer node "$root/bench/peers/socket_io.mjs" "$peer_port"; }

is_there_ws() { is_there_module ws; }
version_ws() { version_module ws; }
start_ws() { start_peer node "$root/bench/peers/ws.mjs" "$peer_port"; }

# of WHAT PEER: prints the name of the peer's function.
of() { echo "$1_${2//./_}"; }

# start_peer COMMAND…: COMMAND must stay in the foreground.
start_peer() {
    need_free "$peer_port" PEER_PORT
    NODE_ENV=production taskset -c "$server_cores" "$@" >"$out/peer.log" 2>&1 &
    server_pid=$!
    await_server peer is_open "$peer_port"
}

# against SERVER ROW ROUND: one measurement of a fresh server, to OUT/SERVER-ROW-ROUND.json.
against() {
    local server=$1 name=$1-$2-$3 aim=() how
    read -ra how <<<"${options[$2]}"
    case $server in
    runcast | plain) aim=(--url "http://127.0.0.1:$gateway_port" --pad "$pad_to_512") ;;
    eager | ring) aim=(--url "http://127.0.0.1:$floor_port" --floor) ;;
    *) aim=(--url "http://127.0.0.1:$peer_port" --peer "$server") ;;
    esac
    if [ "$server" != runcast ] && [ "$server" != plain ]; then
        local bytes
        bytes=$(field "runcast-$2-$3" frame_bytes)
        aim+=(--frame-bytes "${bytes%.*}")
    fi
    progress "$name"
    case $server in
    runcast) start_gateway ;;
    plain) start_gateway --io-uring off ;;
    eager) start_floor ;;
    ring) start_ring ;;
    *) "$(of start "$server")" ;;
    esac
    # Status 1 with a report means that something was lost, which is a column of the table.
    taskset -c "$bench_core" "$build/runcast-bench" fanout "${how[@]}" "${aim[@]}" --json \
        --pid "$server_pid" >"$out/$name.json" || [ -s "$out/$name.json" ] || exit 1
    stop_server
}

# lost SERVER: prints how many messages of all rows and rounds did not reach a subscriber.
lost() {
    local row i name
    for row in "${rows[@]}"; do
        for i in $(seq "$rounds"); do
            name=$1-$row-$i
            echo "$(field "$name" changes) $(field "$name" subscribers) $(field "$name" rows)"
        done
    done | awk '{ lost += $1 * $2 - $3 } END { print lost + 0 }'
}

# cell SERVER ROW [KEY]: prints the ratio of a message's cost to that of eager, and the cost.
cell() {
    local cost times late
    cost=$(median "$1-$2" "${3:-cpu_us_per_frame}")
    times=$(by_pairs "$1-$2" "${3:-cpu_us_per_frame}" "eager-$2" cpu_us_per_frame)
    late=$(median "$1-$2" latency_p50_us)
    awk -v cost="$cost" -v times="$times" -v late="$late" -v limit="${interval_us[$2]}" \
        'BEGIN { behind = late > limit ? ", behind" : ""
            printf "%s (%.1f µs)%s", times == "-" ? "-" : sprintf("%.2f", times), cost, behind }'
}

# line NAME SERVER [KEY]
line() {
    local row
    printf '| %s |' "$1"
    for row in "${rows[@]}"; do printf ' %s |' "$(cell "$2" "$row" "${3:-}")"; done
    printf ' %s |\n' "$(lost "$2")"
}

# Prints the load of all cores in percent while nothing of ours runs: a few percent spoil the figures.
other_work() {
    { head -n 1 /proc/stat; sleep 2; head -n 1 /proc/stat; } | awk '
        { all = 0; for (i = 2; i <= NF; i++) all += $i; idle = $5 + $6 }
        NR == 1 { all_before = all; idle_before = idle }
        END { printf "%.0f", 100 - 100 * (idle - idle_before) / (all - all_before) }'
}

commit() {
    local hash
    hash=$(git -C "$root" rev-parse --short HEAD 2>/dev/null) || hash=unknown
    [ -z "$(git -C "$root" status --porcelain -uno 2>/dev/null)" ] || hash+=", changed"
    echo "$hash"
}

print_table() {
    local peer bytes
    bytes=$(median runcast-steady-1000 frame_bytes)
    printf '# Peers, %s\n\n' "$(date -u +%F)"
    printf 'Server CPU a delivered message of %s bytes, by that of eager (bench/README.md, "Peers").\n' \
        "${bytes%.*}"
    printf 'Medians of %s round(s), of costs and of ratios by eager in the same round; %s s each at a steady pace; server on core %s, bench on core %s.\n\n' \
        "$rounds" "$seconds" "$server_cores" "$bench_core"
    printf '%s\n' "* commit $(commit)" "* $(processor), $(nproc) cores" "* Linux $(uname -r)" \
        "* other work: $before % of the cores before, $(other_work) % after it" ""
    printf '| |'
    for row in "${rows[@]}"; do printf ' %s |' "${title[$row]}"; done
    printf ' lost |\n|---|---|---|---|---|\n'
    line eager eager
    [ -z "$ring" ] || line ring ring
    line "runcast, fan-out alone" runcast fanout_us_per_frame
    line "runcast, with its commits" runcast
    line "runcast without io_uring, fan-out alone" plain fanout_us_per_frame
    for peer in "${present[@]}"; do line "$peer" "$peer"; done
    printf '\n'
    for peer in "${present[@]}"; do
        printf '* %s: %s\n' "$("$(of version "$peer")")" "${settings[$peer]}"
    done
    for peer in "${missing[@]}"; do
        printf '* %s is missing: %s\n' "$peer" "${install[$peer]}"
    done
}

clean_up() {
    stop_server
    rm -rf "$work" "${data:?}/gateway"
}

for peer in "${wanted[@]}"; do
    if [ -z "${install[$peer]:-}" ]; then
        echo "peers.sh: PEERS: '$peer' is none of nchan, nats, mosquitto, socket.io, ws" >&2
        exit 2
    fi
    if "$(of is_there "$peer")"; then
        present+=("$peer")
    else
        missing+=("$peer")
        echo "peers.sh: $peer is missing: ${install[$peer]}" >&2
    fi
done
need_two_cores
build_programs "$build" runcast runcast-bench runcast-floor
ulimit -n "$(ulimit -Hn)"
mkdir -p "$data" "$out"
before=$(other_work)
work=$(mktemp -d)
trap clean_up EXIT

ring=
if has_ring; then ring=ring; fi
for row in "${rows[@]}"; do
    for i in $(seq "$rounds"); do
        for server in runcast plain eager $ring "${present[@]}"; do against "$server" "$row" "$i"; done
    done
done
print_table
[ ${#missing[@]} -eq 0 ]
