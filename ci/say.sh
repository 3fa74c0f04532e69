# Messages of the scripts in ci/, sourced by them: what happens goes to standard error, so that
# standard output stays free for results.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

fail() {
    say "error: $1"
    shift
    for line in "$@"; do printf '  %s\n' "$line" >&2; done
    exit 1
}
