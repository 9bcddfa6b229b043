#!/bin/sh
# Sets the checkout up (packaging/setup.sh) and runs every test: the style check, ctest and node --test on the release build,
# then ctest under the address and thread sanitizers. A part that fails doesn't keep the others from running. The last line
# is always the totals, "N passed, N failed"; the exit status is 1 if anything failed.
#
# usage: sh packaging/test.sh [--fast]
#   --fast  without the sanitizers
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

main() {
  if prepare; then
    part "style check" run_style
    part "ctest, release build" run_ctest default build
    part "node --test" run_node
    sanitizers
  else
    count 0 1 0
  fi
  finish
}

prepare() {
  sh packaging/setup.sh --tests --no-build || return 1
  use_node
  rm -rf "$RESULTS"
  mkdir -p "$RESULTS"
}

sanitizers() {
  if [ -n "$fast" ]; then
    echo "== sanitizers left out (--fast)"
    return 0
  fi
  part "ctest, address sanitizer" run_ctest asan build/asan
  part "ctest, thread sanitizer" run_ctest tsan build/tsan
}

part() {
  printf '\n== %s\n' "$1"
  shift
  "$@"
}

count() {
  passed=$((passed + $1))
  failed=$((failed + $2))
  skipped=$((skipped + $3))
}

# Counts a failure that the results file doesn't tell of: a part that did not start, or that crashed on its way.
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

run_ctest() {
  build_locked "$1" "$2" || {
    count_broken "the build ($1)"
    return 0
  }
  xml=$ROOT/$RESULTS/ctest-$1.xml
  status=0
  without_aslr ctest --preset "$1" --timeout 300 --output-junit "$xml" || status=$?
  count_results "ctest ($1)" "$status" "$(junit_totals "$xml")"
}

build_locked() {
  lock
  build_native "$@" && status=0 || status=1
  unlock
  return "$status"
}

# The thread sanitizer of older compilers can't start where the kernel randomizes addresses by more than 28 bits.
without_aslr() {
  if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ] && setarch -R true 2>/dev/null; then
    setarch -R "$@"
  else
    "$@"
  fi
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
  lock
  build_js && status=0 || status=1
  unlock
  [ "$status" = 0 ] || {
    count_broken "the build of js-shim"
    return 0
  }
  tap=$RESULTS/node.tap
  # Node before 20.11 has no such limit, which ends a file that hangs.
  limit=--test-timeout=300000
  node "$limit" -e 0 2>/dev/null || limit=
  node --test ${limit:+"$limit"} --test-reporter=spec --test-reporter-destination=stdout \
    --test-reporter=tap --test-reporter-destination="$tap" tests/js/*.test.mjs || status=$?
  count_results "node --test" "$status" "$(tap_totals "$tap")"
  node tests/js/conformance.mjs --check "$tap" || count_broken "the conformance table of README.md"
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

finish() {
  echo
  if [ "$skipped" -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
  else
    echo "$passed passed, $failed failed"
  fi
  [ "$failed" -eq 0 ]
}

main
