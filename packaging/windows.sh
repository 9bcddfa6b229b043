#!/bin/sh
# Builds the helper and the fake engine for Windows on x86_64, on Debian 12, and tests them under wine. It installs what this
# takes. The programs land in build/windows/bin.
#
# usage: sh packaging/windows.sh [--no-tests]
set -eu
case ${1-} in
  '') tests=yes ;;
  --no-tests) tests= ;;
  *) echo 'usage: sh packaging/windows.sh [--no-tests]' >&2 && exit 64 ;;
esac
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"
WINEPREFIX=$ROOT/build/windows/wine
WINEDEBUG=-all
export WINEPREFIX WINEDEBUG

main() {
  sh packaging/setup.sh --no-build
  lock
  install_tools
  unlock
  sh packaging/static-deps.sh windows
  mkdir -p "$WINEPREFIX"
  build_native windows build/windows
  [ -z "$tests" ] || python3 -B tests/windows/wine.py
}

install_tools() {
  set --
  has x86_64-w64-mingw32-gcc-posix || set -- "$@" gcc-mingw-w64-x86-64-posix
  has x86_64-w64-mingw32-g++-posix || set -- "$@" g++-mingw-w64-x86-64-posix
  has wine || set -- "$@" wine wine64
  [ $# -gt 0 ] || return 0
  has apt-get || die "this system has no apt-get. Install what these Debian packages hold, then run again: $*"
  say "installing with apt: $*"
  become_root " $*"
  run_apt update
  run_apt install --yes --no-install-recommends "$@"
}

main
