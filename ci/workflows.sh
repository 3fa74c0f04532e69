#!/usr/bin/env bash
# Lints workflows with actionlint, and checks that every action is pinned by its commit and every target exists.
#
# These are .github/workflows, and the snippet in loadtests/k6/ci that users copy.
#
# actionlint is built with Go from the module that ci/actionlint/go.mod pins and go.sum checks, once, and kept in the cache.
# With --cached nothing is built or linted: whether it is in the cache is the exit code.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/go.sh

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
key=$({ cat ci/actionlint/go.{mod,sum} && uname -sm; } | sha256sum)
program=$cache/actionlint-${key:0:12}/actionlint
if [ "${1-}" = --cached ]; then [ -x "$program" ] && exit 0 || exit 1; fi
if [ ! -x "$program" ]; then
    need_go ci/actionlint actionlint
    mkdir -p "${program%/*}"
    fresh=$(mktemp "$program.XXXXXX")
    trap 'rm -f "$fresh"' EXIT
    (cd ci/actionlint && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -o "$fresh" github.com/rhysd/actionlint/cmd/actionlint) ||
        fail "go could not build actionlint" "its message stands above"
    chmod 755 "$fresh"
    mv -f "$fresh" "$program"
fi

workflows=(.github/workflows/*.yml loadtests/k6/ci/github.yml)
# Not with what else may be installed here: the same complaints everywhere.
"$program" -shellcheck= -pyflakes= "${workflows[@]}" || fail "actionlint complains of a workflow"

loose=$(grep -nE '^\s*(- )?uses:' "${workflows[@]}" | grep -vE 'uses: (\./|[^@ ]+@[0-9a-f]{40} # v[0-9])' || true)
[ -z "$loose" ] || fail "an action is not pinned by its commit, with its version behind it" "$loose"
while read -r target; do
    grep -qE "^$target:" Makefile || fail "a workflow runs make $target, and there is no such target"
done < <(grep -ohE '(run: |\| |&& )make [a-z0-9 -]+' .github/workflows/*.yml | sed 's/.*make //' | tr ' ' '\n' | grep -E '^[a-z]' | sort -u)
say "${#workflows[@]} workflows are in order"
