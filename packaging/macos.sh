#!/bin/sh
# Builds the helper and the engines for macOS 14 on Apple silicon, on Debian 12, and looks at the programs. It installs what this
# takes. They land in build/macos/bin, and the app of the npm package in build/macos/app. Nothing here can run them.
#
# usage: sh packaging/macos.sh [--link]
#   --link  fm-proxy and fm-engine-apple alone, without structured output, in build/macos-link/bin: what takes no Rust and no
#           llama.cpp. packaging/test.sh does this, so that the code for macOS goes on to compile and link
#
# FM_APPLE_LIBRARY, the path of libFoundationModels.dylib, puts Apple's library into the app (docs/apple.md).
set -eu
case $#${1-} in
  0) link= ;;
  1--link) link=yes ;;
  *) echo 'usage: sh packaging/macos.sh [--link]' >&2 && exit 64 ;;
esac
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"
APP=build/macos/app

main() {
  if [ -n "$link" ]; then
    build_link
  else
    build_app
  fi
}

build_link() {
  sh packaging/setup.sh --zig --no-build
  use_node
  build_native default build fm-engine-apple # which says what the one for macOS can do
  sh packaging/static-deps.sh macos
  build_native macos-link build/macos-link fm-proxy fm-engine-apple
  node packaging/npm/macho.mjs build/macos-link/bin/fm-proxy build/macos-link/bin/fm-engine-apple
}

build_app() {
  sh packaging/setup.sh --macos --no-build
  use_node
  # They say what those for macOS can do.
  build_native default build fm-engine-apple fm-engine-fake fm-engine-llama fm-engine-remote
  sh packaging/static-deps.sh macos
  build_native macos build/macos
  rm -rf "$APP"
  logged "cmake --install" cmake --install build/macos --prefix "$APP"
  node packaging/npm/macho.mjs build/macos/bin/fm-engine-fake "$APP/fm-proxy.app"
}

main
