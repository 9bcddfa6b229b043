#!/bin/sh
# Builds the packages and the extension of the last commit twice, in two fresh clones, and compares them byte by byte. The two
# builds have paths of different lengths, other time zones, languages and permissions of new files. Differences are listed, and
# then the exit status is 1. Each build takes as long as a first `sh packaging/setup.sh` without the downloads, which are taken
# from this checkout. The clones, 2 GB, are in build/reproduce, and are removed before the next run.
#
# usage: sh packaging/reproduce.sh [--arm64] [--windows] [--macos]
#   --arm64, --windows, --macos  also the packages of that platform; packaging/README.md says what that needs
set -eu
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"
PLACE=$ROOT/build/reproduce
FIRST=$PLACE/one
SECOND=$PLACE/another-one-with-a-longer-name
# The files to build, and those that only tests need.
NOT_COPIED='common mtmd static rust/target rust/patched llmock mcp-1 mcp-2 agents routers schema-suite vulkan zig/cache'

main() {
  arm64=
  windows=
  macos=
  for arg; do
    case $arg in
      --arm64) arm64=yes ;;
      --windows) windows=yes ;;
      --macos) macos=yes ;;
      *) say "unknown option $arg; usage: sh packaging/reproduce.sh [--arm64] [--windows] [--macos]" && exit 64 ;;
    esac
  done
  [ -z "$(git status --porcelain)" ] || say "there are changes that are not committed: they are not built"
  commit=$(git rev-parse HEAD)
  rm -rf "$PLACE"
  TZ=UTC LC_ALL=C build_one "$FIRST" 022
  TZ=Pacific/Auckland LC_ALL=C.UTF-8 build_one "$SECOND" 077
  use_node
  status=0
  for folder in npm vscode; do
    node packaging/npm/compare.mjs "$FIRST/build/$folder" "$SECOND/build/$folder" || status=1
  done
  exit "$status"
}

# build_one FOLDER UMASK: builds in a separate process, because setup.sh and the other scripts lock their checkout.
build_one() (
  say "building in $1"
  git clone --quiet --no-checkout "file://$ROOT" "$1"
  git -C "$1" checkout --quiet --detach "$commit"
  copy_downloads "$1"
  umask "$2"
  cd "$1"
  unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
  export CCACHE_DISABLE=1
  sh packaging/setup.sh ${arm64:+--arm64}
  [ -z "$windows" ] || sh packaging/windows.sh --no-tests
  [ -z "$macos" ] || sh packaging/macos.sh
  use_node
  node packaging/npm/pack.mjs
  install_js packaging/vscode
  logged "the extension" node packaging/vscode/build.mjs
  for package in build/npm/*-*/; do
    target=$(basename -- "$package")
    logged "the extension for $target" node packaging/vscode/build.mjs --target "$target" --platform-package "$package"
  done
)

copy_downloads() {
  mkdir -p "$1/build/deps"
  ! [ -d build/models ] || cp -a build/models "$1/build/"
  excludes='--anchored --no-wildcards-match-slash --exclude=./.lock --exclude=./.tmp.*'
  for name in $NOT_COPIED; do
    excludes="$excludes --exclude=./$name --exclude=./*/$name"
  done
  # shellcheck disable=SC2086 # a list of words
  (lock && set -f && tar -C build/deps $excludes -cf - . | tar -C "$1/build/deps" -xf -)
}

main "$@"
