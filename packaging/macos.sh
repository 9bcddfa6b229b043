#!/bin/sh
# Builds the helper and the engines for macOS 14 on Apple silicon, on Debian 12, and checks the programs. It installs the tools
# for that. The programs go to build/macos/bin, the npm package's app to build/macos/app. They can't be run on this machine.
#
# usage: sh packaging/macos.sh [--link]
#   --link  only fm-proxy and fm-engine-apple, without structured output, in build/macos-link/bin: what needs no Rust
#           and no llama.cpp. packaging/test.sh does this, so that the code for macOS continues to compile and link
#
# FM_APPLE_LIBRARY, the path of libFoundationModels.dylib with its LICENSE.md beside it, puts Apple's library into the app
# (docs/apple.md, "Make Apple's library"). Without it, Apple's own model can't answer, and the app is not for a release.
set -eu
case $#${1-} in
  0) link= ;;
  1--link) link=yes ;;
  *) echo 'usage: sh packaging/macos.sh [--link]' >&2 && exit 64 ;;
esac
library=${FM_APPLE_LIBRARY:+$(realpath -m -- "$FM_APPLE_LIBRARY")} # lib.sh changes the folder
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
  build_native default build fm-engine-apple # it describes what the one for macOS can do
  sh packaging/static-deps.sh macos
  build_native macos-link build/macos-link fm-proxy fm-engine-apple
  node packaging/npm/macho.mjs build/macos-link/bin/fm-proxy build/macos-link/bin/fm-engine-apple
}

build_app() {
  check_library
  sh packaging/setup.sh --macos --no-build
  use_node
  # Builds the engines for this machine too: they write the descriptions of the engines for macOS.
  build_native default build fm-engine-apple fm-engine-fake fm-engine-llama fm-engine-remote
  sh packaging/static-deps.sh macos
  build_native macos build/macos
  rm -rf "$APP"
  logged "cmake --install" cmake --install build/macos --prefix "$APP"
  [ -z "$library" ] || add_library "$APP/fm-proxy.app/Contents"
  node packaging/npm/macho.mjs build/macos/bin/fm-engine-fake "$APP/fm-proxy.app"
}

# Checks this before the build, which takes half an hour.
check_library() {
  if [ -z "$library" ]; then
    say "the app gets no library of Apple's, so its own model won't answer (FM_APPLE_LIBRARY; docs/apple.md)"
    return 0
  fi
  for file in "$library" "$(dirname -- "$library")/LICENSE.md"; do
    [ -f "$file" ] || die "FM_APPLE_LIBRARY: there is no $file. docs/apple.md, \"Make Apple's library\", tells how to get it"
  done
}

# The names are those that packaging/npm/pack.mjs looks for in a release.
add_library() {
  cp "$library" "$1/Frameworks/libFoundationModels.dylib"
  cp "$(dirname -- "$library")/LICENSE.md" "$1/Resources/FoundationModels-LICENSE.md"
}

main
