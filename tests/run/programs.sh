# programs.sh - runs programs in parallel, counts the tests that they report, and sums them up.
#
# Sourced by tests/run.sh, which sets top, log, selected, asan_only and not_run.
#
#   add NAME GROUPS SECONDS NEEDS COMMAND…   declares a program; nothing runs yet
#   run_programs                             runs those that were declared and selected
#
# A program starts when the programs that it NEEDS have finished. The longest of the programs that
# may start goes first, by the table tests/run/times.txt. The table also has the share of a core
# that a program uses. Programs start until the sum of their shares reaches a limit, which the last
# of them may exceed: otherwise short programs with small shares would keep a long one waiting. The
# limit rises while the processor is idle part of the time, since programs then use less than their
# shares, and falls while it is not, as on a busy machine.

declare -a names=()
declare -A groups_of=() limit_of=() needs_of=() after_of=() command_of=() seconds_of=() share_of=() is_last=()
least=150 greatest=260 # bounds of the limit, in hundredths of a core

add() { # NAME GROUPS SECONDS NEEDS COMMAND…
    local name=$1 command
    [ -z "${command_of[$name]:-}" ] || { echo "two programs are called $name" >&2; exit 2; }
    names+=("$name")
    groups_of[$name]=$2 limit_of[$name]=$3 needs_of[$name]=$4
    shift 4
    printf -v command '%q ' "$@"
    command_of[$name]=$command
}

# Adds a program that times out when many others run. It starts after all others have finished; two
# of this kind run at once.
add_last() { # NAME GROUPS SECONDS NEEDS COMMAND…
    add "$@"
    is_last[$1]=1
    share_of[$1]=$((greatest / 2))
}

# Runs a program with a time limit and leaves `PASSED FAILED` in $log/NAME.count, and its seconds
# of the clock and of CPU in $log/NAME.time.
run_counted() { # NAME SECONDS COMMAND…
    local name=$1 seconds=$2 status=0 counts
    local TIMEFORMAT='%R %U %S'
    shift 2
    { time timeout --kill-after=10 "$seconds" "$@" >"$log/$name.out" 2>"$log/$name.err" </dev/null; } \
        2>"$log/$name.time" || status=$?
    [ "$status" -ne 124 ] || echo "ended after $seconds s" >>"$log/$name.err"
    counts=$(python3 -BIS tests/support/python/count.py "$log/$name.out" "$status") || counts="0 1"
    echo "$counts" >"$log/$name.count"
    printf '%-44s %4d passed %4d failed %4.0f s, %4.0f s of CPU\n' "$name" $counts \
        $(tail -n 1 "$log/$name.time" | awk '{ print $1, $2 + $3 }')
    [ "${counts#* }" -eq 0 ] || show_failure "$name" "$status" | tee "$log/$name.failure"
}

show_failure() { # NAME STATUS
    local failures
    failures=$(grep -nE -A16 '^ *(not ok|FAIL|WARN|SKIP)\b|# SKIP|(error|warning): ' \
        "$log/$1.out" | head -n 100) || true
    printf '%s\n' "--- $1 ended with status $2" "${failures:-$(tail -n 20 "$log/$1.out")}"
    tail -n 40 "$log/$1.err"
    echo "--- to run it alone: tests/run.sh --only $1"
}

# Reports the exit status of a command as one test.
as_test() { # TEXT COMMAND…
    local text=$1 status=0
    shift
    "$@" || status=$?
    if [ "$status" -eq 0 ]; then echo "ok - $text"; else echo "not ok - $text"; fi
    return "$status"
}
export -f as_test

# --- selection and order ---------------------------------------------------------

# Selects a program with the programs that it needs.
select_with_needs() { # NAME
    local need
    [ -z "${chosen[$1]:-}" ] || return 0
    chosen[$1]=1
    for need in ${needs_of[$1]}; do
        select_with_needs "$need"
    done
}

# Without a selection all programs run. --only selects programs by name. --asan selects those
# programs of the given names or groups that run under ASan.
select_programs() {
    local name word
    local -A chosen=() found=()
    [ ${#selected[@]} -gt 0 ] || return 0
    for name in "${names[@]}"; do
        for word in "${selected[@]}"; do
            if [ -n "$asan_only" ]; then
                [[ " $name ${groups_of[$name]} " == *" $word "* ]] || continue
                [[ " ${needs_of[$name]} " == *" build-asan "* ]] || continue
            elif [ "$name" != "$word" ]; then
                continue
            fi
            found[$word]=1
            select_with_needs "$name"
        done
    done
    for word in "${selected[@]}"; do
        [ -n "${found[$word]:-}" ] || { echo "no program is called $word" >&2; exit 2; }
    done
    word=("${names[@]}")
    names=()
    for name in "${word[@]}"; do
        [ -z "${chosen[$name]:-}" ] || names+=("$name")
    done
}

# Reads the table and sorts the names: first builds and packages, which others need, then the longest
# programs. The table lists programs that take at least three seconds; the others get one share.
sort_programs() {
    local name clock cpu
    while read -r name clock cpu; do
        [ "${name:0:1}" != '#' ] || continue
        seconds_of[$name]=$clock
        share_of[$name]=${share_of[$name]:-$((clock ? (100 * cpu + clock - 1) / clock : 100))}
    done <"$top/tests/run/times.txt"
    mapfile -t names < <(for name in "${names[@]}"; do
        [[ ${groups_of[$name]} =~ ^(builds|modules)$ ]] && seconds_of[$name]=9999
        echo "${seconds_of[$name]:-1} $name"
    done | sort -srnk1,1 | cut -d' ' -f2)
    for name in "${names[@]}"; do
        cpu=${share_of[$name]:-45}
        cpu=$((cpu < 10 ? 10 : cpu))
        share_of[$name]=$((cpu > greatest ? greatest : cpu))
    done
}

# Returns true if the programs that this one needs or follows have finished, or were not selected.
may_start() { # NAME
    local other
    for other in ${needs_of[$1]} ${after_of[$1]:-}; do
        [ -z "${pending[$other]:-}" ] || return 1
    done
}

# Changes the limit by how idle the processor was since the last change, two seconds ago or more.
# Work of low priority, such as builds here, gives way to programs, so its time counts as idle.
adapt_limit() {
    local user low system free waited irq soft stolen all idle
    [ $((SECONDS - adapted)) -ge 2 ] || return 0
    read -r _ user low system free waited irq soft stolen _ </proc/stat
    free=$((low + free + waited)) all=$((user + system + free + irq + soft + stolen))
    idle=$((100 * (free - free_before) / (all - all_before + 1)))
    if [ "$idle" -ge 15 ] && [ -n "$full" ]; then
        limit=$((limit < greatest ? limit + 10 : limit))
    elif [ "$idle" -lt 5 ]; then
        limit=$((limit > least ? limit - 10 : limit))
    fi
    all_before=$all free_before=$free adapted=$SECONDS
}

# Starts programs until the limit is reached, in the order of names.
start_programs() {
    local i name
    adapt_limit
    full=""
    for i in "${!names[@]}"; do
        if [ "$in_use" -ge "$limit" ]; then
            full=1
            return
        fi
        name=${names[i]}
        may_start "$name" || continue
        eval "run_counted $name ${limit_of[$name]} ${command_of[$name]}" &
        running[$!]=$name in_use=$((in_use + share_of[$name]))
        unset 'names[i]'
    done
}

# Runs the programs of names.
run_all() {
    local name pid tick="" in_use=0 limit=200 full="" adapted=0 all_before=0 free_before=0
    local -A running=() pending=()
    for name in "${names[@]}"; do
        pending[$name]=1
    done
    while start_programs; [ ${#running[@]} -gt 0 ]; do
        [ -n "$tick" ] || { sleep 2 & tick=$!; } # the limit may change then
        wait -n -p pid || true
        [ "$pid" != "$tick" ] || { tick="" && continue; }
        name=${running[$pid]}
        in_use=$((in_use - share_of[$name]))
        unset "running[$pid]" "pending[$name]"
    done
    wait # for the last tick
}

run_programs() {
    local name first=() last=()
    select_programs
    sort_programs
    for name in "${names[@]}"; do
        if [ -n "${is_last[$name]:-}" ]; then last+=("$name"); else first+=("$name"); fi
    done
    names=("${first[@]}") && run_all
    names=("${last[@]}") && run_all
}

# --- the sum -----------------------------------------------------------------------------

# Repeats the start of up to four failures: a reader may have only the end of the output.
show_failures_again() {
    local file files=("$log"/*.failure)
    for file in "${files[@]:0:4}"; do
        head -n 24 "$file" | cut -c1-240
    done
}

sum_up() {
    local passed=0 failed=0 file good bad rule
    show_failures_again
    echo "the ten programs that took longest, and the CPU time of all:"
    for file in "$log"/*.time; do
        echo "$(basename "$file" .time) $(cat "$file")"
    done | awk '{ printf "%8.0f s, %4.0f s of CPU  %s\n", $2, $3 + $4, $1; sum += $3 + $4 }
        END { printf "%8d\n", sum >"/dev/stderr" }' 2>"$log/cpu" | sort -rn | sed -n 1,10p
    printf '%8.1f minutes of CPU, %d minutes of the clock\n' \
        "$(awk '{ print $1 / 60 }' "$log/cpu")" $((SECONDS / 60))
    for file in "$log"/*.count; do
        read -r good bad <"$file"
        passed=$((passed + good)) failed=$((failed + bad))
        [ "$bad" -eq 0 ] || echo "failed: $(basename "$file" .count) ($bad)"
    done
    for rule in "${not_run[@]}"; do
        echo "not run: $rule"
    done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
