# The name of what is built, sourced by the scripts that build a release or hold one against its promises.

version=$(awk -F '"' '/^version *=/ {print $2; exit}' Cargo.toml)
[ -n "$version" ] || fail "Cargo.toml names no version of the workspace"

# module_version COMMIT: what the module of a release calls itself in `tidegate_info`: 0.1.0+1a2b3c4.
#
# TIDEGATE_VERSION tells it to the compiler. It is a part of the module's bytes, so every build that is compared with a release
# needs the same.
module_version() {
    case $1 in
    unknown) echo "$version" ;;
    *-dirty) echo "$version+${1:0:7}-dirty" ;;
    *) echo "$version+${1:0:7}" ;;
    esac
}
