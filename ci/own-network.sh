#!/usr/bin/env bash
# Runs a command where nobody but itself is on the network: ci/own-network.sh COMMAND...
#
# Istio's proxies listen on all addresses and on fixed ports (a waypoint on 15008). In a network namespace of
# its own, with loopback alone, nobody outside reaches them and nobody there has the ports. The command keeps
# its process id, so that signals reach it and nothing is left between the two. Needs root, or a kernel that
# lets users have namespaces; unshare (util-linux) and ip (iproute2).
set -euo pipefail
folder=$(dirname "$0")
. "$folder/say.sh"

[ $# -gt 0 ] || fail "nothing to run: name a command"
for tool in unshare ip; do
    command -v "$tool" >/dev/null || fail "$tool is not there" "it is in the packages util-linux and iproute2"
done
own=(unshare --net --mount)
[ "$(id -u)" = 0 ] || own+=(--map-root-user)
"${own[@]}" true 2>/dev/null || fail "no namespaces for this user" \
    "run it as root, or let users have them: sysctl kernel.unprivileged_userns_clone=1, and on" \
    "Ubuntu kernel.apparmor_restrict_unprivileged_userns=0"
exec "${own[@]}" bash -c 'ip link set lo up && exec "$@"' "${0##*/}" "$@"
