# Functions that the scripts of this folder share. This file is sourced, not run: `. "$(dirname -- "$0")/lib.sh"`. It changes to
# the root of the checkout, so all paths below are relative to that root. All its output goes to stderr. A script of another
# folder must set FM_ROOT first.
# shellcheck shell=sh

ROOT=${FM_ROOT:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
cd "$ROOT" || exit
DEPS=build/deps
LOG=build/setup.log

say() { printf 'fm-proxy: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

on_terminal() { [ -t 2 ]; }

# One set-up or build at a time in a checkout. The lock ends with the process (and the tools that it started).
lock() {
  mkdir -p "$DEPS"
  exec 9>"$DEPS/.lock"
  flock -n 9 || {
    say "another set-up is running in this checkout; waiting until it ends"
    flock 9
  }
}

unlock() { exec 9>&-; }

# logged TEXT COMMAND...: runs COMMAND with its output in the log, and shows the end of that when COMMAND fails.
logged() {
  logged_text=$1
  shift
  "$@" >"$LOG" 2>&1 </dev/null && return 0
  tail -n 40 "$LOG" >&2
  say "$logged_text failed; the lines above are the end of $ROOT/$LOG"
  return 1
}

# Puts the Node that the set-up installed, if any, before the system's.
use_node() {
  [ ! -x "$DEPS/node/bin/node" ] || PATH=$ROOT/$DEPS/node/bin:$PATH
}

# configure PRESET DIR: runs cmake if it has not run yet, the presets have changed or the checkout was moved. ninja handles
# changes of the CMake files themselves.
configure() {
  ! configured "$@" || return 0
  mkdir -p "$2"
  rm -f "$2/.configured"
  grep -Fqsx "CMAKE_HOME_DIRECTORY:INTERNAL=$ROOT" "$2/CMakeCache.txt" || rm -rf "$2/CMakeCache.txt" "$2/CMakeFiles"
  logged "cmake --preset $1" cmake --preset "$1" || return 1
  configured_for "$1" >"$2/.configured"
}

configured() { [ -f "$2/build.ninja" ] && configured_for "$1" | cmp -s - "$2/.configured"; }

configured_for() {
  printf '%s\n' "$1" "$ROOT"
  cat CMakePresets.json
  [ ! -e "$DEPS/rust/.vendored" ] || echo 'with the crates'
  [ ! -e "$DEPS/llhttp" ] || echo 'with the gateway'
  [ ! -e "$DEPS/sqlite-vec" ] || echo 'with vectors in SQLite'
  ! pkg-config --exists xcb-randr xcb-ewmh gio-unix-2.0 2>/dev/null || echo 'with the desktop'
}

# build_native PRESET DIR [TARGET...]: prints a message only if there is much to build.
build_native() {
  native_preset=$1
  native_dir=$2
  shift 2
  { [ -x "$native_dir/bin/fm-proxy" ] && configured "$native_preset" "$native_dir"; } || say "building ($native_preset)"
  configure "$native_preset" "$native_dir" &&
    logged "the build ($native_preset)" watched cmake --build "$native_dir" --target "${@:-all}" 8>&2
}

# watched COMMAND...: runs a command that writes ninja's output to the log, and shows its progress on descriptor 8.
watched() {
  watch_ninja >/dev/null 2>&8 8>&- 9>&- &
  watch=$!
  NINJA_STATUS='[%f/%t] ' "$@" 8>&- && watched_status=0 || watched_status=$?
  kill "$watch" 2>/dev/null || :
  wait "$watch" 2>/dev/null || :
  [ ! -t 8 ] || printf '\r%40s\r' '' >&8
  return "$watched_status"
}

# Shows the progress: on a terminal in one line that changes, else in a new line every 20 s. It ends when the script has ended,
# because a signal may end the script alone.
watch_ninja() {
  watch_begun=$(date +%s)
  watch_told=0
  while sleep 1 2>/dev/null && kill -0 $$ 2>/dev/null; do
    seconds=$(($(date +%s) - watch_begun))
    steps=$(last_step)
    if on_terminal; then
      printf '\rfm-proxy: %s after %d:%02d ' "$steps" $((seconds / 60)) $((seconds % 60)) >&2
    elif [ "$seconds" -ge $((watch_told + 20)) ]; then
      watch_told=$seconds
      say "$steps after $((seconds / 60)):$(printf %02d $((seconds % 60)))"
    fi
  done
}

# The progress of ninja by its log. A step may run another ninja, which has fewer steps.
last_step() {
  awk -F '[][/]' -v steps=building '/^\[[0-9]+\/[0-9]+\] / && $3 + 0 >= most { most = $3 + 0; steps = "[" $2 "/" $3 "]" }
    END { print steps }' "$LOG"
}

# Runs a command with fixed addresses if necessary. The thread sanitizer of older compilers can't start if the kernel randomizes
# addresses by more than 28 bits.
without_aslr() {
  if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ] && setarch -R true 2>/dev/null; then
    setarch -R "$@"
  else
    "$@"
  fi
}

# install_js DIR: runs npm ci in DIR, unless it was done with the present lock file.
install_js() {
  ! cmp -s "$1/package-lock.json" "$1/node_modules/.fm-installed" || return 0
  say "installing the npm packages of $1"
  twice logged "npm ci in $1" npm ci --prefix "$1" --no-audit --no-fund --no-update-notifier || return 1
  cp "$1/package-lock.json" "$1/node_modules/.fm-installed"
}

# Compiles js-shim where one of its files is newer than the last build.
build_js() {
  install_js js-shim || return 1
  if [ -d js-shim/dist ] && [ -f build/.js-built ] && [ -z "$(changed_js)" ]; then
    return 0
  fi
  say "compiling js-shim"
  touch build/.js-built.new
  logged "npm run build in js-shim" npm run build --prefix js-shim || return 1
  mv build/.js-built.new build/.js-built
}

# Builds fm-gateway's page where one of its files is newer than the last build.
build_ui() {
  install_js gateway/ui || return 1
  if [ -f build/bin/gateway-ui/index.html ] && [ -f build/.ui-built ] && [ -z "$(changed_ui)" ]; then
    return 0
  fi
  say "building the gateway's page"
  touch build/.ui-built.new
  logged "npm run build in gateway/ui" npm run build --prefix gateway/ui || return 1
  mv build/.ui-built.new build/.ui-built
}

changed_ui() { find gateway/ui -mindepth 1 -name node_modules -prune -o -newer build/.ui-built -print -quit; }

changed_js() {
  find js-shim -mindepth 1 \( -name node_modules -o -name dist -o -name '.dist-*' -o -name examples \) -prune \
    -o -newer build/.js-built -print -quit
}

twice() {
  "$@" && return 0
  say "trying once more"
  "$@"
}

# --- system packages and downloads ------------------------------------------------------------------------------------

become_root() {
  as_root=
  [ "$(id -u)" != 0 ] || return 0
  has sudo || die "not root, and there is no sudo. As root, run: apt-get install$1"
  as_root=sudo
}

run_apt() {
  set -- $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
  if on_terminal; then
    twice "$@" >&2
  else
    twice logged "apt-get" "$@"
  fi || die "apt-get failed; see above. Check the network and the sources of apt, then run again"
}

# pin NAME: reads its line of packaging/pins into kind, package, version, bytes, sha256 and file.
pin() {
  while read -r name kind package version bytes sha256 file; do
    [ "$name" != "$1" ] || return 0
  done <packaging/pins
  die "packaging/pins has no line $1"
}

# verify PATH: checks a file against the pin that was read last. A wrong file is never used and never kept.
verify() {
  actual_bytes=$(wc -c <"$1")
  actual=$(sha256sum "$1")
  actual=${actual%% *}
  [ "$actual" != "$sha256" ] || [ "$actual_bytes" != "$bytes" ] || return 0
  say "wrong checksum: $file"
  say "  from      $package $version, $(basename -- "$1")"
  say "  expected  sha256 $sha256, $bytes bytes"
  say "  actual    sha256 $actual, $actual_bytes bytes"
  say "The file was deleted, nothing of it is in use. Run the command again: a damaged download goes away by that."
  say "If the sums stay as they are, the registry (or a proxy or mirror before it) hands out another file than the one that"
  die "this version was tested with: don't use it, and compare the line of packaging/pins with that of a fresh clone"
}
