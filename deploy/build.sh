# build.sh - builds programs in a Release build folder, with visible progress.
#
# Sourced by deploy/run.sh and bench/run.sh. Prints nothing when there is nothing to build.

# build_programs FOLDER PROGRAM…: configures FOLDER if it is new, and builds only these programs
# and what they depend on.
build_programs() {
    local folder=$1
    shift
    if [ ! -e "$folder/build.ninja" ]; then
        echo "building into $folder" >&2
        cmake -S "$(dirname "${BASH_SOURCE[0]}")/.." -B "$folder" -G Ninja \
            -DCMAKE_BUILD_TYPE=Release -DTESTS=OFF --log-level=WARNING >&2
    fi
    NINJA_STATUS='[%f/%t] ' ninja -C "$folder" "$@" | show_progress >&2
}

# Shows the progress of ninja: on a terminal as one line that is updated, otherwise as a line for each
# fifth of the work. Passes on warnings and errors unchanged.
show_progress() {
    local line fifth=0 moved=
    while IFS= read -r line; do
        case $line in
        "ninja: Entering directory "* | "ninja: no work to do." | *"Re-checking globbed"*) ;;
        "["*/*"] "*)
            line=${line%%]*} line=${line#[}
            if [ -t 1 ]; then
                printf '\r\033[K%s of %s steps' "${line%/*}" "${line#*/}"
                moved=yes
            elif [ $((${line%/*} * 5 / ${line#*/})) -gt "$fifth" ]; then
                fifth=$((${line%/*} * 5 / ${line#*/}))
                echo "${line%/*} of ${line#*/} steps"
            fi ;;
        *) printf '%s%s\n' "${moved:+$'\n'}" "$line"; moved= ;;
        esac
    done
    [ -z "$moved" ] || echo
}
