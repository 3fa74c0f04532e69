# Commands in the background, sourced by the scripts in ci/ after say.sh: silent, unless they fail. They end with the script.

logs=$(mktemp -d)
declare -A pids=()
stop_jobs() {
    local pid
    for pid in "${pids[@]}"; do
        # A function runs in a shell of its own, which does not end what it runs.
        pkill -TERM -P "$pid" 2>/dev/null || true
        kill "$pid" 2>/dev/null || true
    done
    rm -rf "$logs"
}
trap stop_jobs EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# begin NAME COMMAND...
begin() {
    "${@:2}" >"$logs/$1" 2>&1 </dev/null &
    pids[$1]=$!
}

# await NAME: ends the script with what the command printed, if it failed.
await() {
    local pid=${pids[$1]}
    unset "pids[$1]"
    wait "$pid" || {
        cat "$logs/$1" >&2
        exit 1
    }
}

# yielding COMMAND...: runs it with what other commands leave of the processors.
yielding() {
    if command -v chrt >/dev/null; then chrt --idle 0 "$@"; else nice -n 19 "$@"; fi
}
