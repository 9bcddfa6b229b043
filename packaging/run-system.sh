#!/bin/sh
# fm-system in one step: sets it up (packaging/setup.sh --system), shows which parts of this desktop work, and prints the
# configuration that starts it from an MCP client. With WORDS it carries out this request instead, with the local model's help.
#
# usage: sh packaging/run-system.sh [WORDS...]
set -eu

usage() {
  cat <<'END'
usage: sh packaging/run-system.sh [WORDS...]

Without words: sets fm-system up, tells on stderr what of this desktop can be used, and prints the configuration for an MCP
client on stdout.
With words: does what they say, on this desktop.

  --help  this text

examples: sh packaging/run-system.sh
          sh packaging/run-system.sh "close all reddit tabs"
END
}

case ${1-} in
  --help | -h) usage && exit 0 ;;
  -*) printf 'fm-system: unknown option %s\n' "$1" >&2 && usage >&2 && exit 64 ;;
esac

sh "$(dirname -- "$0")/setup.sh" --system
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"
PROGRAM=$ROOT/build/bin/fm-system

# Writes a path as a JSON string. A path with a control character, such as a line break, is refused.
json_string() {
  case $1 in
    *[[:cntrl:]]*) die "a path has a control character: $1" ;;
  esac
  printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

# The desktop's variables that fm-system needs. Clients that use MCP's SDKs pass on little more than HOME and PATH.
print_env() {
  separator=
  for name in DISPLAY WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR; do
    eval "value=\${$name-}"
    # shellcheck disable=SC2154 # eval sets it
    if [ -n "$value" ]; then
      value=$(json_string "$value")
      printf '%s"%s": %s' "$separator" "$name" "$value"
      separator=', '
    fi
  done
}

if [ $# -gt 0 ]; then
  exec "$PROGRAM" do -- "$@"
fi
"$PROGRAM" doctor >&2 || :
say "the configuration for an MCP client; docs/system.md says where each client has it:"
command=$(json_string "$PROGRAM")
environment=$(print_env)
printf '{"mcpServers": {"desktop": {"command": %s, "args": [], "env": {%s}}}}\n' "$command" "$environment"
