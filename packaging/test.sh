#!/bin/sh
# Sets the checkout up (packaging/setup.sh) and runs every test: the style check, ctest and node --test on the release build, a
# build by clang, a build for macOS of the parts that need no Rust, then ctest under the address and thread sanitizers
# (tests/README.md lists what runs where). A part that fails doesn't keep the others from running. At the end it prints the time
# of each part and the slowest tests. The last line is always the totals, "N passed, N failed"; the exit status is 1 if anything
# failed.
#
# usage: sh packaging/test.sh [--fast]
#   --fast  without the sanitizers, the builds by clang and for macOS, and the longest tests (it prints their names)
set -eu

case ${1-} in
  '') fast= ;;
  --fast) fast=yes ;;
  *) echo 'usage: sh packaging/test.sh [--fast]' >&2 && exit 64 ;;
esac
# shellcheck source=packaging/lib.sh
. "$(dirname -- "$0")/lib.sh"
RESULTS=build/results
passed=0
failed=0
skipped=0
HANGS_MS=900000 # a file of node --test that is still there then hangs; ctest's figure is in tests/CMakeLists.txt
# The tests of node --test that --fast leaves out. Of ctest it leaves out the tests with the label "long".
LONG_NODE_TESTS='repeat schema-suite openai-sampling openai-structured openai-tools package install rehearse first-hour'
begun=$(date +%s)

main() {
  if part "set-up" prepare; then
    part "style check" run_style
    part "ctest, release build" run_ctest default build ${fast:+-LE long}
    part "node --test" run_node
    part "node --test, the gateway's page" run_ui
    part "node --test, MCP clients" run_mcp
    [ -n "$fast" ] || part "compiled by clang" run_clang
    [ -n "$fast" ] || part "macOS, compiled and linked by zig" run_macos
    sanitizers
  else
    count 0 1 0
  fi
  finish
}

prepare() {
  rm -rf "$RESULTS"
  mkdir -p "$RESULTS"
  sh packaging/setup.sh --tests --no-build || return 1
  use_node
}

sanitizers() {
  if [ -n "$fast" ]; then
    echo "== sanitizers left out (--fast)"
    return 0
  fi
  part "ctest, address sanitizer" run_ctest asan build/asan
  if tsan_starts; then
    part "ctest, thread sanitizer" run_ctest tsan build/tsan
  else
    echo "== left out: ctest, thread sanitizer: its programs can't start here. The compiler is older than this kernel's" \
      "vm.mmap_rnd_bits, and a container may not run setarch -R. As root outside of it: sysctl vm.mmap_rnd_bits=28"
    count 0 0 1
  fi
}

# Tries a program that does nothing. If it can't start, the whole part would fail, for a reason outside of this code.
tsan_starts() {
  echo 'int main(void) { return 0; }' | gcc -fsanitize=thread -x c -o "$RESULTS/tsan" - || return 0 # the build says why
  without_aslr "$RESULTS/tsan" 2>/dev/null
}

# part NAME COMMAND...: runs the command, and notes its time in $RESULTS/times as "SECONDS NAME".
part() {
  part_name=$1
  part_begun=$(date +%s)
  shift
  printf '\n== %s (%s after the start)\n' "$part_name" "$(clock $((part_begun - begun)))"
  "$@" && part_status=0 || part_status=$?
  mkdir -p "$RESULTS"
  echo "$(($(date +%s) - part_begun)) $part_name" >>"$RESULTS/times"
  return "$part_status"
}

# clock SECONDS: prints the time as minutes and seconds.
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

count() {
  passed=$((passed + $1))
  failed=$((failed + $2))
  skipped=$((skipped + $3))
}

# Counts a failure that the results file doesn't have: a part that did not start, or that crashed in the middle.
count_broken() {
  echo "== FAILED: $1"
  count 0 1 0
}

run_style() {
  if python3 tests/style/check.py; then
    count 1 0 0
  else
    count_broken "style check"
  fi
}

# Builds with clang. The other builds use gcc, which gives other warnings.
run_clang() {
  if build_locked clang build/clang; then
    count 1 0 0
  else
    count_broken "the build (clang)"
  fi
}

# Most of the time this only runs the compiler on one processor, so it is done in parallel with the tests.
prepare_macos() {
  sh packaging/setup.sh --zig --no-build && sh packaging/static-deps.sh macos
} >"$RESULTS/macos.log" 2>&1

run_macos() {
  if sh packaging/macos.sh --link; then
    count 1 0 0
  else
    count_broken "packaging/macos.sh --link"
  fi
}

# run_ctest PRESET FOLDER OPTION...: runs ctest, and counts the results.
run_ctest() {
  preset=$1
  build_locked "$1" "$2" || {
    count_broken "the build ($1)"
    return 0
  }
  shift 2
  if [ "$preset" = default ] && [ -z "$fast" ]; then
    prepare_macos &
  fi
  xml=$ROOT/$RESULTS/ctest-$preset.xml
  status=0
  without_aslr ctest --preset "$preset" --output-junit "$xml" "$@" || status=$?
  count_results "ctest ($preset)" "$status" "$(junit_totals "$xml")"
  [ $# -eq 0 ] || ctest --preset "$preset" -N -L long | sed -n 's/^ *Test *#[0-9]*: \(.*\)/== left out (--fast): \1/p'
}

build_locked() {
  lock
  build_native "$@" && status=0 || status=1
  unlock
  return "$status"
}

# ctest's JUnit file says "notrun" both of a test that skipped itself and of one whose program is missing.
junit_totals() {
  [ -f "$1" ] || return 0
  awk '
    function settle() { if (waiting) failed++; waiting = 0 }
    /^[ \t]*<testcase / {
      settle()
      if (/ status="run"/) passed++
      else if (/ status="disabled"/) skipped++
      else waiting = 1
    }
    /^[ \t]*<skipped message="SKIP_/ { if (waiting) skipped++; waiting = 0 }
    END { settle(); print passed + 0, failed + 0, skipped + 0 }' "$1"
}

run_node() {
  run_files "node --test" build_js js-shim "$RESULTS/node.tap" node_tests || return 0
  # The table needs the tests of all clients.
  [ -n "$fast" ] || node tests/js/conformance.mjs --check "$RESULTS/node.tap" ||
    count_broken "the table of docs/conformance.md"
}

# Tests the page of fm-gateway in Chromium, on a fake gateway. --fast leaves out the tests of all states in all widths.
run_ui() { run_files "node --test, the gateway's page" build_ui gateway/ui "$RESULTS/ui.tap" ui_tests || return 0; }

# Tests fm-system with clients of the Model Context Protocol.
run_mcp() { run_files "node --test, MCP clients" build_mcp fm-system "$RESULTS/mcp.tap" mcp_tests || return 0; }

build_mcp() { [ -x build/bin/fm-system ] && install_js tests/system/clients; }

mcp_tests() { echo tests/system/clients/*.test.mjs; }

# run_files NAME BUILD WHAT TAP LIST: runs BUILD, of WHAT, then the test files that LIST prints, with their results in TAP.
# 1: the build is broken, and nothing ran.
run_files() {
  lock
  "$2" && status=0 || status=1
  unlock
  [ "$status" = 0 ] || {
    count_broken "the build of $3"
    return 1
  }
  find_node_options
  # shellcheck disable=SC2046,SC2086 # no name has a space
  node --test $options --test-reporter=spec --test-reporter-destination=stdout \
    --test-reporter=tap --test-reporter-destination="$4" $("$5") || status=$?
  count_results "$1" "$status" "$(tap_totals "$4")"
  return 0
}

# By default Node runs fewer files at once than there are processors, but most files only wait. Before 20.11 it has no such
# options.
find_node_options() {
  options="--test-timeout=$HANGS_MS --test-concurrency=$(($(nproc) + 1))"
  # shellcheck disable=SC2086 # two words, or none
  node $options -e 0 2>/dev/null || options=
}

ui_tests() {
  for file in tests/gateway/ui/*.test.mjs; do
    if [ -n "$fast" ] && [ "$file" = tests/gateway/ui/axe.test.mjs ]; then
      echo "== left out (--fast): $file" >&2
    else
      echo "$file"
    fi
  done
}

# The files of node --test. Files that are left out are reported on stderr.
node_tests() {
  for file in tests/js/*.test.mjs; do
    name=$(basename "$file" .test.mjs)
    case " ${fast:+$LONG_NODE_TESTS} " in
      *" $name "*) echo "== left out (--fast): $file" >&2 ;;
      *) echo "$file" ;;
    esac
  done
}

tap_totals() {
  [ -f "$1" ] || return 0
  awk '
    /^# (pass|fail|cancelled|skipped|todo) [0-9]+$/ { n[$2] = $3 }
    END { if ("pass" in n) print n["pass"], n["fail"] + n["cancelled"], n["skipped"] + n["todo"] }' "$1"
}

# count_results WHAT STATUS "PASSED FAILED SKIPPED"
count_results() {
  # shellcheck disable=SC2086 # three words, or none
  set -- "$1" "$2" $3
  [ $# -eq 5 ] || set -- "$1" "$2" 0 0 0
  if [ $(($3 + $4)) -eq 0 ]; then
    count_broken "$1 ran no test"
    return 0
  fi
  count "$3" "$4" "$5"
  [ "$2" -eq 0 ] || [ "$4" -gt 0 ] || count_broken "$1 ended with status $2"
}

# The seconds of each test in a JUnit file of ctest: "SECONDS NAME".
junit_seconds() {
  sed -n 's/^[ \t]*<testcase name="\([^"]*\)".* time="\([0-9.]*\)".*/\2 \1/p' "$1"
}

# The same for the top-level tests in a TAP file.
tap_seconds() {
  awk '/^(not )?ok [0-9]+ - / { sub(/^(not )?ok [0-9]+ - /, ""); name = $0 }
    /^  duration_ms: / && name != "" { printf "%.2f %s\n", $2 / 1000, name; name = "" }' "$1"
}

print_times() {
  printf '\n== time of each part\n'
  [ ! -f "$RESULTS/times" ] || while read -r seconds name; do
    printf '%7s  %s\n' "$(clock "$seconds")" "$name"
  done <"$RESULTS/times"
  printf '%7s  %s\n' "$(clock $(($(date +%s) - begun)))" "all"
  printf '\n== slowest tests, in seconds\n'
  {
    for preset in default asan tsan; do
      [ ! -f "$RESULTS/ctest-$preset.xml" ] || junit_seconds "$RESULTS/ctest-$preset.xml" | sed "s/\$/ ($preset)/"
    done
    [ ! -f "$RESULTS/node.tap" ] || tap_seconds "$RESULTS/node.tap" | sed 's/$/ (node)/'
    [ ! -f "$RESULTS/ui.tap" ] || tap_seconds "$RESULTS/ui.tap" | sed 's/$/ (page)/'
  } | sort -rn | head -n 12
}

finish() {
  print_times
  echo
  if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
  else
    echo "$passed passed, $failed failed"
  fi
  [ "$failed" -eq 0 ]
}

main
