# Go for the scripts in ci/ that build tools from pinned modules, sourced by them after ci/say.sh.

# need_go FOLDER WHAT: ends the script unless there is a Go that can read FOLDER/go.mod; WHAT says what for.
# Go 1.21 and later fetch the release that go.mod asks for; older ones do not even read the file.
need_go() {
    local wanted found
    wanted=$(awk '$1 == "go" {print $2}' "$1/go.mod")
    command -v go >/dev/null || fail "go is not installed: Go $wanted or later builds $2 from source" \
        "install it from https://go.dev/dl, or put go into PATH"
    found=$(cd "$1" && go env GOVERSION 2>&1) || fail "this Go is too old, and cannot fetch a newer one" \
        "found    $found" "expected go$wanted or later (GOTOOLCHAIN=auto lets Go 1.21 and later fetch it)"
    [[ $found =~ ^go1\.[0-9]+ ]] && [ "$(printf '%s\n' "go$wanted" "$found" | sort -V | head -n 1)" = "go$wanted" ] ||
        fail "this Go is too old" "found    $found" "expected go$wanted or later"
}
