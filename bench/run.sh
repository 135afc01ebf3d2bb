#!/usr/bin/env bash
# run.sh - the standard table: runcast against the floor server, in one run on one machine.
#
#   bench/run.sh [BUILD]        BUILD: a Release build directory (default: build)
#
# The gateway, the floor server and the harness are built first.
#
# ROUNDS   how often floor and gateway take turns; medians are printed, and the median ratio of
#          the pairs (3). The three rows of 1,000 subscribers, and those of 10,000 topics and of
#          ten subscribers, take 2 * ROUNDS + 1: their pairs differ by more than the distance
#          to the target
# DURATION how long each fan-out is measured (5)
# FULL=1   a million runs in the table instead of a hundred thousand
# GATEWAY_PORT, FLOOR_PORT, SECURE_PORT  ports of the servers (3931, 3932, 3933)
# DATA     data of the gateways, on a real disk (BUILD/bench-data)
# OUT      the JSON of every measurement (BUILD/bench-out)
#
# The rows of hostile requests need Node. Those of the CLI also need `npm ci --ignore-scripts` in
# tests/conformance/worker; without it they count as missed.
#
# bench/README.md explains the table. Ends with status 1 if a target was missed.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/deploy/build.sh"
source "$root/bench/servers.sh"
read_build "$@"
rounds=${ROUNDS:-3}
seconds=${DURATION:-5}
data=${DATA:-$build/bench-data}
out=${OUT:-$build/bench-out}
gateway_port=${GATEWAY_PORT:-3931}
floor_port=${FLOOR_PORT:-3932}
secure_port=${SECURE_PORT:-3933}
server_cores=0
bench_cores=1
missed=0
need_count ROUNDS "$rounds"
need_seconds DURATION "$seconds"

build_programs "$build" runcast runcast-bench runcast-floor
need_two_cores
ulimit -n "$(ulimit -Hn)"
for name in 1000 512-bytes full-1000 topics ten; do times_of[$name]=$((2 * rounds + 1)); done
mkdir -p "$data" "$out"

trap stop_server EXIT
floors=(floor)
if has_ring; then floors+=(ring); fi

# Starts a gateway with a certificate of the usual kind: ECDSA, P-256.
start_secure() {
    [ -f "$out/tls.pem" ] ||
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
            -subj /CN=bench -keyout "$out/tls.key" -out "$out/tls.pem" 2>/dev/null
    start_gateway --listen "127.0.0.1:$secure_port,tls" --tls-cert "$out/tls.pem" \
        --tls-key "$out/tls.key"
}

# against gateway|secure|floor|ring NAME COMMAND [OPTIONS]: one measurement of a fresh server, to
# OUT/NAME.json. If it lost something, that is a missed target; the script continues.
against() {
    local server=$1 name=$2 url=http://127.0.0.1:$gateway_port trust=()
    shift 2
    case $server in
    floor | ring) url=http://127.0.0.1:$floor_port ;;
    secure) url=https://127.0.0.1:$secure_port trust=(--insecure) ;;
    esac
    progress "$name"
    "start_$server"
    if ! taskset -c "$bench_cores" "$build/runcast-bench" "$@" --json --pid "$server_pid" \
        --url "$url" "${trust[@]}" >"$out/$name.json"; then
        [ -s "$out/$name.json" ] || exit 1
        echo "$name: lost or refused something, see $out/$name.json"
        missed=$((missed + 1))
    fi
    stop_server
}

# row LABEL VALUE UNIT FLOOR RATIO [TARGET]: TARGET is "<= N" or ">= N", for the ratio if there is
# one, otherwise for the value.
row() {
    local label=$1 value=$2 unit=$3 floor=$4 ratio=$5 target=${6:-} verdict=
    if [ -n "$target" ]; then
        local measured=$ratio
        [ "$floor" = - ] && [ "$ratio" = - ] && measured=$value
        verdict=$(awk -v m="$measured" -v t="$target" 'BEGIN {
            split(t, part, " ")
            met = part[1] == "<=" ? m + 0 <= part[2] + 0 : m + 0 >= part[2] + 0
            print (m != "" && m != "-" && met) ? "met" : "MISSED" }')
        if [ "$verdict" = MISSED ]; then missed=$((missed + 1)); fi
    fi
    printf '%-46s %12s %-6s %9s %8s  %-10s %s\n' "$label" "${value:--}" "$unit" "$floor" \
        "$ratio" "$target" "$verdict"
}

# turns NAME LABEL: the loop turns of the gateway in one measurement.
turns() {
    row "$2: turns above 5 ms" "$(field "$1" turns_over_5ms)" "" - - "<= 0"
}

# fanout_rounds NAME PAD OPTION…: gateway and both floors in turn, with frames of the same size. PAD
# bytes of metadata make the gateway's longer.
fanout_rounds() {
    local name=$1 pad=$2 i bytes floor
    shift 2
    for i in $(seq "${times_of[$name]:-$rounds}"); do
        against gateway "gateway-$name-$i" fanout --pad "$pad" "$@"
        bytes=$(field "gateway-$name-$i" frame_bytes)
        for floor in "${floors[@]}"; do
            against "$floor" "$floor-$name-$i" fanout --floor --frame-bytes "${bytes%.*}" "$@"
        done
    done
}

# frame_rows NAME LABEL TARGET TARGET_OF_RING
frame_rows() {
    local alone floor ring
    alone=$(median "gateway-$1" fanout_us_per_frame)
    floor=$(median "floor-$1" cpu_us_per_frame)
    row "server CPU a frame, $2" "$alone" us "$floor" \
        "$(by_pairs "gateway-$1" fanout_us_per_frame "floor-$1" cpu_us_per_frame)" "$3"
    [ ${#floors[@]} -eq 2 ] || return 0
    ring=$(median "ring-$1" cpu_us_per_frame)
    row "  beside the floor that sends by io_uring" "$alone" us "$ring" \
        "$(by_pairs "gateway-$1" fanout_us_per_frame "ring-$1" cpu_us_per_frame)" "$4"
}

# saturated_rows COUNT: the next change is made when the last but one has arrived.
saturated_rows() {
    frame_rows "full-$1" "$1, saturated" "$2" "$3"
    row "  frames that arrived together" "$(median "gateway-full-$1" frames_per_read)" "" - -
    row "  lost" "$(median "gateway-full-$1" lost)" "" - - "<= 0"
}

# Bursts of changes of 10,000 runs with one subscriber each, and for the gateway as many of runs
# without.
measure_topics() {
    local i bytes
    local topics=(fanout --topic run --subscribers 10000 --burst 64 --seconds "$seconds")
    for i in $(seq "${times_of[topics]}"); do
        against gateway "gateway-topics-$i" "${topics[@]}" --runs 10000 --rate 6400 --interleave
        bytes=$(field "gateway-topics-$i" frame_bytes)
        against floor "floor-topics-$i" "${topics[@]}" --rate 3200 --floor \
            --frame-bytes "${bytes%.*}"
    done
}

topic_rows() {
    local alone floor
    alone=$(median gateway-topics fanout_us_per_frame)
    floor=$(median floor-topics cpu_us_per_frame)
    row "CPU a frame, 10,000 topics of one subscriber" "$alone" us "$floor" \
        "$(by_pairs gateway-topics fanout_us_per_frame floor-topics cpu_us_per_frame)" \
        "<= 1.1"
    row "  lost" "$(median gateway-topics lost)" "" - - "<= 0"
}

fanout_rows() {
    local count=$1 all floor
    frame_rows "$count" "$count subscribers" "<= 1.05" ""
    all=$(median "gateway-$count" cpu_us_per_frame)
    floor=$(median "floor-$count" cpu_us_per_frame)
    row "  with the cost of the changes themselves" "$all" us "$floor" \
        "$(by_pairs "gateway-$count" cpu_us_per_frame "floor-$count" cpu_us_per_frame)"
    row "  latency p50" "$(median "gateway-$count" latency_p50_us)" us \
        "$(median "floor-$count" latency_p50_us)" -
    row "  latency p99" "$(median "gateway-$count" latency_p99_us)" us \
        "$(median "floor-$count" latency_p99_us)" -
    row "  lost" "$(median "gateway-$count" lost)" "" - - "<= 0"
    row "  conflated" "$(median "gateway-$count" conflated)" "" - -
    turns "gateway-$count-${times_of[$count]:-$rounds}" "  last round"
}

burst_rows() {
    local name=$1 label=$2 floor alone
    floor=$(median floor-1000 cpu_us_per_frame)
    alone=$(median "$name" fanout_us_per_frame)
    row "CPU a frame, bursts of 16 $label" "$alone" us "$floor" \
        "$(quotient "$alone" "$floor")" "<= 0.15"
    row "  frames that arrived together" "$(median "$name" frames_per_read)" "" - -
}

measure_secure() {
    local i
    for i in $(seq "$rounds"); do
        against secure "tls1000-$i" fanout --subscribers 1000 --rate 50 --seconds "$seconds"
    done
}

# Like the first rows, by TLS; the cost without TLS is in the column "floor".
secure_rows() {
    local alone plain shaken
    alone=$(median tls1000 fanout_us_per_frame)
    plain=$(median gateway-1000 fanout_us_per_frame)
    row "CPU a frame, 1,000 subscribers by TLS" "$alone" us "$plain" \
        "$(quotient "$alone" "$plain")"
    row "  lost" "$(median tls1000 lost)" "" - - "<= 0"
    turns "tls1000-$rounds" "  last round"
    row "CPU a connection with its handshake" "$(median tls1000 connect_us)" us \
        "$(median gateway-1000 connect_us)" -
    shaken=$(awk -v a="$(median tls1000 connect_us)" -v b="$(median gateway-1000 connect_us)" \
        'BEGIN { if (a > b) printf "%.0f", 1e6 / (a - b) }')
    row "  handshakes of one core" "$shaken" /s - -
    row "memory a connection by TLS" "$(median tls1000 bytes_per_connection)" bytes \
        "$(median gateway-1000 bytes_per_connection)" -
}

measure_bursts() {
    local i burst=(fanout --subscribers 1000 --rate 160 --burst 16 --seconds "$seconds")
    for i in $(seq "$rounds"); do
        against gateway "batch16-$i" "${burst[@]}" --by batch
        against gateway "put16-$i" "${burst[@]}" --by metadata
    done
}

measure_http() {
    local i
    for i in $(seq "$rounds"); do
        against gateway "sse1000-$i" fanout --transport sse --subscribers 1000 --rate 50 \
            --seconds "$seconds"
        against gateway "poll5000-$i" fanout --transport longpoll --subscribers 5000 \
            --rate 4 --seconds "$seconds"
        against gateway "poll200-$i" fanout --transport longpoll --subscribers 200 \
            --rate 20 --seconds "$seconds"
    done
}

# Event streams and long polls. The column "floor" has the p99 of the bare echoes.
http_rows() {
    local floor alone
    floor=$(median floor-1000 cpu_us_per_frame)
    alone=$(median sse1000 fanout_us_per_frame)
    row "CPU a frame, 1,000 event streams" "$alone" us "$floor" \
        "$(quotient "$alone" "$floor")"
    row "  lost" "$(median sse1000 lost)" "" - - "<= 0"
    turns "sse1000-$rounds" "  last round"
    row "memory an event stream" "$(median sse1000 bytes_per_connection)" bytes - -
    row "CPU a change delivered, 5,000 held polls," \
        "$(median poll5000 fanout_us_per_frame)" us - -
    row "  the poll that follows it included; conflated" "$(median poll5000 conflated)" \
        "" - -
    row "  change to last of 5,000 p50" "$(median poll5000 last_p50_us)" us \
        "$(median poll5000 echo_p50_us)" -
    row "  lost" "$(median poll5000 lost)" "" - - "<= 0"
    turns "poll5000-$rounds" "  last round"
    row "memory a held poll" "$(median poll5000 bytes_per_connection)" bytes - -
    row "change to last of 200 pollers p50" "$(median poll200 last_p50_us)" us - - \
        "<= 5000"
    row "  p99" "$(median poll200 last_p99_us)" us - - "<= 50000"
    row "  of it until the change was answered, p50" "$(median poll200 ack_p50_us)" us - -
    row "  bare loopback round trip p50, p99" "$(median poll200 echo_p50_us)" us \
        "$(median poll200 echo_p99_us)" -
    row "  bare echo to the last of 200 p50, p99" "$(median poll200 echo_last_p50_us)" us \
        "$(median poll200 echo_last_p99_us)" -
    row "  lost" "$(median poll200 lost)" "" - - "<= 0"
}

# measure_bare NAME OPTION…: SQLite alone, in the database of the gateway that has just stopped.
measure_bare() {
    local name=$1
    shift
    progress "$name"
    if ! taskset -c "$server_cores" "$build/runcast-bench" bare --seconds "$seconds" --json \
        --database "$data/gateway/runcast.db" "$@" >"$out/$name.json"; then
        echo "$name: SQLite alone could not be measured"
        missed=$((missed + 1))
    fi
}

# Gateway and bench share both cores: a bench on one core would take that from the gateway's writer
# only.
measure_requests() {
    local i
    server_cores=0,1 bench_cores=0,1
    for i in $(seq "$rounds"); do
        against gateway "triggers-$i" trigger --concurrency 64 --payload 1024 --seconds "$seconds"
        measure_bare "bare-$i" --group "$(printf '%.0f' "$(field "triggers-$i" group)")"
    done
    against gateway large trigger --concurrency 1 --payload 3145000 --count 20
    against gateway quotes trigger --concurrency 1 --payload 3145000 --quotes --count 20
    against gateway batches trigger --concurrency 1 --batch 1000 --count 20000 --payload 64
    against gateway dequeue dequeue --workers 8 --rate 50 --seconds "$seconds"
    against gateway snapshot snapshot --runs 100000
    against gateway scale scale --sizes "10000,$many"
    server_cores=0 bench_cores=1
}

# add_up NAME: writes least-NAME.json, the cost of a change that SQLite alone commits and then the
# floor sends to ten.
add_up() {
    awk -v sqlite_cpu="$(field "bare-$1" cpu_us_per_change)" \
        -v frame_cpu="$(field "floor-$1" cpu_us_per_frame)" \
        -v sqlite="$(field "bare-$1" latency_p50_us)" -v sent="$(field "floor-$1" latency_p50_us)" \
        'BEGIN { printf "{\"cpu_us_per_frame\":%f,\"latency_p50_us\":%f}\n",
                 frame_cpu + sqlite_cpu / 10, sqlite + sent }' >"$out/least-$1.json"
}

# One change, one request and one connection, compared with their cost in the floor.
measure_single() {
    local i bytes ten=(--subscribers 10 --rate 40 --seconds "$seconds")
    for i in $(seq "${times_of[ten]}"); do
        against gateway "ten-$i" fanout "${ten[@]}"
        measure_bare "bare-ten-$i" --rate 40
        bytes=$(field "ten-$i" frame_bytes)
        against floor "floor-ten-$i" fanout --floor --frame-bytes "${bytes%.*}" "${ten[@]}"
        add_up "ten-$i"
    done
    for i in $(seq "$rounds"); do
        against gateway "trigger-$i" trigger --seconds 2
        against floor "floor-trigger-$i" trigger --seconds 2
        against gateway "retrieve-$i" retrieve --seconds 2
        against floor "floor-retrieve-$i" retrieve --floor --seconds 2
    done
}

# beside LABEL NAME KEY FLOOR KEY TARGET: a row with medians of the gateway, the floor and the pairs.
beside() {
    row "$1" "$(median "$2" "$3")" us "$(median "$4" "$5")" \
        "$(by_pairs "$2" "$3" "$4" "$5")" "$6"
}

single_rows() {
    beside "CPU of a change with 10 subscribers, a frame" ten cpu_us_per_frame \
        least-ten cpu_us_per_frame "<= 1.3"
    row "  CPU of SQLite alone" "$(median bare-ten cpu_us_per_change)" us - -
    row "  a change without subscribers, 100 a second" "$(median ten change_us)" us - -
    beside "  from the change to the socket, p50" ten latency_p50_us \
        least-ten latency_p50_us "<= 1.2"
    beside "  from its commit to the last frame, mean" ten commit_to_write_us \
        bare-ten latency_mean_us "<= 1.2"
    row "  SQLite's commit alone, p50" "$(median bare-ten latency_p50_us)" us - -
    beside "CPU of a trigger of 1 KiB, 64 connections" trigger cpu_us_per_run \
        floor-trigger cpu_us_per_run "<= 6"
    beside "CPU of a retrieve, 64 connections" retrieve cpu_us_per_request \
        floor-retrieve cpu_us_per_request "<= 2"
    beside "CPU of a connection with its subscription" gateway-10000 connect_us \
        floor-10000 connect_us "<= 1.5"
}

request_rows() {
    local kind triggers bare
    triggers=$(median triggers per_second)
    bare=$(median bare per_second)
    row "durable triggers, 64 connections, 1 KiB" "$triggers" /s - - ">= 10000"
    row "  beside SQLite alone, groups of $(median triggers group)" "$triggers" /s "$bare" \
        "$(by_pairs triggers per_second bare per_second)" ">= 0.8"
    row "  latency p99" "$(median triggers latency_p99_us)" us - -
    row "3 MiB trigger p50" "$(field large latency_p50_us)" us - -
    turns large "  3 MiB trigger"
    row "3 MiB of quotes, trigger p50" "$(field quotes latency_p50_us)" us - -
    turns quotes "  3 MiB of quotes"
    row "batches of 1,000, runs" "$(field batches per_second)" /s - -
    turns batches "  1,000-item batch"
    row "trigger to dequeue by long poll, 8 workers, p50" "$(field dequeue latency_p50_us)" \
        us - - "<= 10000"
    row "  p99" "$(field dequeue latency_p99_us)" us - -
    row "  of it until the trigger was answered, p50" "$(field dequeue ack_p50_us)" us - -
    row "  not taken" "$(field dequeue lost)" "" - - "<= 0"
    turns dequeue "  dequeue"
    row "snapshot of 100,000 runs" "$(field snapshot seconds)" s - -
    row "  server CPU a row" "$(field snapshot cpu_us_per_row)" us - -
    turns snapshot "  snapshot"
    # A few runs share the gateway's own cost, so the target applies to a million only.
    local most=
    if [ "$many" -ge 1000000 ]; then most="<= 500"; fi
    row "memory a run, $many runs, payload left out" "$(field scale bytes_per_run)" bytes \
        - - "$most"
    for kind in trigger retrieve list list_tag list_task list_batch; do
        row "$kind p99 at $many runs, and at 10,000" \
            "$(field scale "${kind}_${many}_p99_us")" us \
            "$(field scale "${kind}_10000_p99_us")" "$(field scale "${kind}_p99_ratio")" \
            "<= 2"
    done
}

many=100000
if [ -n "${FULL:-}" ]; then many=1000000; fi

steady=(--subscribers 1000 --rate 40 --seconds "$seconds")
fanout_rounds 1000 0 "${steady[@]}"
fanout_rounds 512-bytes "$pad_to_512" "${steady[@]}"
fanout_rounds 10000 0 --subscribers 10000 --rate 4 --seconds "$seconds"
fanout_rounds full-1000 0 --subscribers 1000 --rate 400 --seconds 2 --ahead 2
fanout_rounds full-10000 0 --subscribers 10000 --rate 40 --seconds 2 --ahead 2
measure_topics
measure_secure
measure_bursts
measure_http
measure_single
measure_requests

printf '\n%s, %s cores, Linux %s, data on %s\n\n' "$(processor)" "$(nproc)" "$(uname -r)" \
    "$(stat -f -c %T "$data")"
printf '%-46s %12s %-6s %9s %8s  %-10s\n' "" gateway "" floor ratio target
fanout_rows 1000
frame_rows 512-bytes "1000, $(printf '%.0f' "$(median gateway-512-bytes frame_bytes)") bytes" \
    "<= 1.05" ""
row "  lost" "$(median gateway-512-bytes lost)" "" - - "<= 0"
fanout_rows 10000
saturated_rows 1000 "<= 0.75" "<= 1.15"
saturated_rows 10000 "<= 1.05" ""
topic_rows
secure_rows
burst_rows batch16 "(one commit)"
burst_rows put16 "(16 PUTs at once)"
row "memory a connection, 10,000 idle" "$(median gateway-10000 bytes_per_connection)" \
    bytes - - "<= 700"
http_rows
single_rows
request_rows
rm -rf "${data:?}/gateway"
printf '\n'
node "$root/bench/hostile.mjs" "$build" || missed=$((missed + 1))
printf '\n'
node "$root/bench/watches.mjs" "$build" || missed=$((missed + 1))
printf '\n'
node "$root/bench/repeats.mjs" "$build" || missed=$((missed + 1))
printf '\n'
if [ -d "$root/tests/conformance/worker/node_modules" ]; then
    node "$root/bench/children.mjs" "$build" || missed=$((missed + 1))
else
    echo "the official CLI is missing: cd tests/conformance/worker && npm ci --ignore-scripts  MISSED"
    missed=$((missed + 1))
fi

if [ "$missed" -gt 0 ]; then
    printf '\ntargets missed: %s\n' "$missed"
    exit 1
fi
printf '\nall targets met\n'
