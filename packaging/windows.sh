#!/bin/sh
# Builds the programs for Windows on x86_64, on Debian 12, and tests them under wine. It installs the tools for that. The programs
# and llama.cpp's libraries, which are also built, go to build/windows/bin. The first build takes half an hour on two processors.
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
  lock
  install_tools
  rm -f "$DEPS/.no-rust"
  unlock
  sh packaging/setup.sh --no-build
  sh packaging/static-deps.sh windows
  share_sources
  prepare_wine
  build_native windows build/windows
  [ -z "$tests" ] || python3 -B tests/windows/wine.py
}

# The sources are the same for each platform; what is built from them is not.
share_sources() {
  mkdir -p "$DEPS/windows/llama" "$DEPS/windows/rust"
  ln -sfn ../../llama/src "$DEPS/windows/llama/src"
  ln -sfn ../../rust/vendor "$DEPS/windows/rust/vendor"
}

# Makes wine's Windows folder, with the one DLL that wine 8 lacks. Programs that the build runs need it too.
prepare_wine() {
  library=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
  mkdir -p "$WINEPREFIX"
  [ -d "${library%/*}" ] || logged wineboot wineboot --init || exit 1
  [ -e "$library" ] || x86_64-w64-mingw32-gcc-posix -O2 -shared -s -o "$library" tests/windows/bcryptprimitives.c -lbcrypt
}

install_tools() {
  set --
  has x86_64-w64-mingw32-gcc-posix || set -- "$@" gcc-mingw-w64-x86-64-posix
  has x86_64-w64-mingw32-g++-posix || set -- "$@" g++-mingw-w64-x86-64-posix
  has wine || set -- "$@" wine wine64
  [ -d /usr/lib/rustlib/src/rust/library/vendor ] || set -- "$@" cargo-web rust-web-src
  [ $# -gt 0 ] || return 0
  has apt-get || die "this system has no apt-get. Install what these Debian packages hold, then run again: $*"
  say "installing with apt: $*"
  become_root " $*"
  run_apt update
  run_apt install --yes --no-install-recommends "$@"
}

main
