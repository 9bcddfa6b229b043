#!/bin/sh
# Builds the helper and the engines for macOS 14 on Apple silicon, on Debian 12, and looks at the programs. It installs what this
# takes. They land in build/macos/bin, and the app of the npm package in build/macos/app. Nothing here can run them.
#
# usage: sh packaging/macos.sh
set -eu
[ $# = 0 ] || { echo 'usage: sh packaging/macos.sh' >&2 && exit 64; }
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"
APP=build/macos/app

main() {
  sh packaging/setup.sh --macos --no-build
  use_node
  build_native default build fm-engine-fake fm-engine-llama fm-engine-remote # which say what those for macOS can do
  sh packaging/static-deps.sh macos
  build_native macos build/macos
  rm -rf "$APP"
  logged "cmake --install" cmake --install build/macos --prefix "$APP"
  node packaging/npm/macho.mjs build/macos/bin/fm-engine-fake "$APP/fm-proxy.app"
}

main
