# servers.sh - starts the gateway and the floor for one measurement each, and reads the results.
#
# Sourced by run.sh and peers.sh, which set root (the checkout), data and out (folders for a gateway's
# data and for JSON), rounds, server_cores, gateway_port and floor_port. Also by upgrade.sh, which sets
# root and uses only the keys, the folder of programs and the checks of settings.

# read_build ARGUMENT…: sets build to the given folder, or to the default. For --help, prints the
# top comment of the calling script.
read_build() {
    case ${1-} in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*)
        echo "$(basename "$0"): no option '$1' is known; --help tells what is" >&2
        exit 2
        ;;
    esac
    if [ $# -gt 1 ]; then
        echo "$(basename "$0"): one folder of programs, or none; --help tells the rest" >&2
        exit 2
    fi
    build=${1:-$root/build}
}

# need_seconds VARIABLE VALUE: requires a number above 0.
need_seconds() {
    [[ $2 =~ ^[0-9]+(\.[0-9]+)?$ && $2 =~ [1-9] ]] && return 0
    echo "$(basename "$0"): $1 is a number of seconds above 0, not '$2'" >&2
    exit 2
}

# need_count VARIABLE VALUE: requires a whole number above 0.
need_count() {
    [[ $2 =~ ^[1-9][0-9]*$ ]] && return 0
    echo "$(basename "$0"): $1 is a whole number from 1, not '$2'" >&2
    exit 2
}

# Keys for gateways that live for one measurement.
export RUNCAST_PROJECT_REF=proj_benchbenchbenchbench
export RUNCAST_DEV_SECRET_KEY=tr_dev_benchbenchbenchbenchben1
export RUNCAST_STAGING_SECRET_KEY=tr_stg_benchbenchbenchbenchben2
export RUNCAST_PROD_SECRET_KEY=tr_prod_benchbenchbenchbenchben3
export RUNCAST_PREVIEW_SECRET_KEY=tr_preview_benchbenchbenchbenchben4
export RUNCAST_METRICS_TOKEN=bench-metrics-token # loop turns are read with it
export TRIGGER_SECRET_KEY=$RUNCAST_PROD_SECRET_KEY
export TRIGGER_PROJECT_REF=$RUNCAST_PROJECT_REF

pad_to_512=346 # makes the gateway's frames about 512 bytes long
server_pid=

need_two_cores() {
    [ "$(nproc)" -lt 2 ] || return 0
    echo "$(basename "$0"): one core for the server and one for the load are needed" >&2
    exit 2
}

stop_server() {
    [ -n "$server_pid" ] || return 0
    kill "$server_pid" 2>/dev/null || true
    wait "$server_pid" 2>/dev/null || true
    server_pid=
}

is_open() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# need_free PORT VARIABLE: ends the program if another server listens on PORT.
need_free() {
    is_open "$1" || return 0
    echo "$(basename "$0"): something listens on port $1 already; set $2 to a free one" >&2
    exit 2
}

# ready PORT: true if the server on PORT answers that it is ready.
ready() {
    local line=
    {
        exec 3<>"/dev/tcp/127.0.0.1/$1" &&
            printf 'GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3 &&
            IFS= read -r -t 2 line <&3
        exec 3>&- || true
    } 2>/dev/null || return 1
    case $line in "HTTP/1.1 200"*) return 0 ;; esac
    return 1
}

# await_server NAME CONDITION…: waits until CONDITION is true. Ends the program and prints
# OUT/NAME.log if the server ends or takes ten seconds.
await_server() {
    local name=$1
    shift
    for _ in $(seq 100); do
        if "$@"; then return 0; fi
        kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "$(basename "$0"): the server $name did not start:" >&2
    cat "$out/$name.log" >&2
    exit 1
}

# start_gateway [OPTION…]
start_gateway() {
    need_free "$gateway_port" GATEWAY_PORT
    rm -rf "${data:?}/gateway"
    taskset -c "$server_cores" "$build/runcast" --listen "127.0.0.1:$gateway_port" \
        --data "$data/gateway" --log-level warn "$@" >"$out/gateway.log" 2>&1 &
    server_pid=$!
    await_server gateway ready "$gateway_port"
}

# start_floor [--ring]
start_floor() {
    need_free "$floor_port" FLOOR_PORT
    taskset -c "$server_cores" "$build/runcast-floor" --port "$floor_port" "$@" \
        >"$out/floor.log" 2>&1 &
    server_pid=$!
    await_server floor grep -q listens "$out/floor.log"
}

start_ring() { start_floor --ring; }

# has_ring: true if the floor can send by io_uring here; if not, prints why its rows are left out.
has_ring() {
    if (trap stop_server EXIT && start_ring) 2>"$out/ring.log"; then return 0; fi
    echo "$(basename "$0"): the rows of the floor that sends by io_uring are left out:" >&2
    sed 's/^/    /' "$out/ring.log" >&2
    return 1
}

progress() {
    if [ -t 2 ]; then printf '\r\033[K%s\n' "measuring $1" >&2; fi
}

# field NAME KEY: prints a number of one measurement, or nothing if it has none.
field() {
    sed -n "s/.*\"$2\":\([-0-9.]*\).*/\1/p" "$out/$1.json"
}

# middle: prints the median of the numbers on its input.
middle() {
    sort -n | awk '{ v[NR] = $1 }
        END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# How often a measurement takes its turn, by its name without the server; default: rounds.
declare -A times_of=()

# median SERVER-NAME KEY: of SERVER-NAME-1, SERVER-NAME-2 …
median() {
    local i
    for i in $(seq "${times_of[${1#*-}]:-$rounds}"); do field "$1-$i" "$2"; done | middle
}

# quotient A B: prints A / B, or "-" if one is unknown.
quotient() {
    awk -v a="$1" -v b="$2" \
        'BEGIN { if (a != "" && b + 0 > 0) printf "%.3f", a / b; else print "-" }'
}

# by_pairs NAME KEY FLOOR-NAME KEY: prints the median ratio of NAME-1 to FLOOR-NAME-1, NAME-2 to
# FLOOR-NAME-2 …: the machine's speed changes from minute to minute, but is the same for a pair. "-"
# if one is unknown.
by_pairs() {
    local i times=${times_of[${1#*-}]:-$rounds} quotients
    quotients=$(for i in $(seq "$times"); do
        echo "$(quotient "$(field "$1-$i" "$2")" "$(field "$3-$i" "$4")")"
    done)
    if grep -qx -- - <<<"$quotients"; then echo -; else middle <<<"$quotients"; fi
}

processor() {
    sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1
}
