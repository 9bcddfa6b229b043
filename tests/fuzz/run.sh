#!/bin/sh
# Runs the fuzz targets, beginning with the corpus: builds the targets with clang, runs each for MINUTES, minimises the new inputs
# into tests/fuzz/corpus/TARGET.pack, and prints a table. Installs nothing; needs clang with compiler-rt, cmake, ninja, json-c and
# python3, and for some targets what `sh packaging/setup.sh --tests --no-build` downloads.
#
# usage: sh tests/fuzz/run.sh [-j N] MINUTES [TARGET...]
#   -j N    N processes on each target at once; without it one
#   TARGET  framer, json, dispatch, request, events, schema, sessions, remote, head,
#           gateway, transcript, filter, envelope, url, mcp; without it all, one after the other
#
# A finding ends its target. Its input is kept in build/fuzz/findings/, the path is printed, and the exit status is 1. It is
# also 1 if a target did not run to its end, or its corpus could not be merged.
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"

TARGETS="framer json dispatch request events schema sessions remote head gateway transcript filter envelope url mcp"
BUILD=build/fuzz
FINDINGS=$FM_ROOT/$BUILD/findings
CORPUS=$FM_ROOT/tests/fuzz/corpus

usage() {
  echo "usage: sh tests/fuzz/run.sh [-j N] MINUTES [TARGET...]   (targets: $TARGETS)" >&2
  exit 64
}

main() {
  jobs=1
  if [ "${1-}" = -j ]; then
    is_number "${2-}" || usage
    jobs=$2
    shift 2
  fi
  is_number "${1-}" || usage
  seconds=$(($1 * 60))
  shift
  for target; do
    case " $TARGETS " in
      *" $target "*) ;;
      *) usage ;;
    esac
  done
  [ $# -gt 0 ] || eval "set -- $TARGETS"
  need_tools
  build_targets "$@" || exit 1
  mkdir -p "$FINDINGS"
  findings=0
  failures=0
  rows=
  for target; do
    fuzz "$target"
    look_for_findings "$target"
    check_run "$target"
    minimise "$target"
    add_row "$target"
  done
  print_table
  [ "$findings" -eq 0 ] && [ "$failures" -eq 0 ]
}

is_number() {
  case $1 in
    '' | *[!0-9]* | 0*) return 1 ;;
  esac
}

need_tools() {
  for tool in clang cmake ninja pkg-config python3; do
    has "$tool" || die "there is no $tool. On Debian or Ubuntu: apt-get install clang cmake ninja-build pkg-config python3"
  done
  pkg-config --exists json-c || die "there is no json-c to build with. On Debian or Ubuntu: apt-get install libjson-c-dev"
  mkdir -p "$BUILD"
  echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return n && !d; }' >"$BUILD/probe.c"
  clang -fsanitize=fuzzer,address,undefined -o "$BUILD/probe" "$BUILD/probe.c" >"$BUILD/probe.log" 2>&1 || {
    tail -n 3 "$BUILD/probe.log" >&2
    die "this clang can't link libFuzzer and the sanitizers: its compiler-rt is missing. On Debian: apt-get install" \
      "libclang-rt-$(clang -dumpversion | cut -d . -f 1)-dev"
  }
}

build_targets() {
  say "building the fuzz targets"
  programs=
  for target; do programs="$programs fuzz_$target"; done
  configure fuzz "$BUILD" || return 1
  for target; do
    grep -q "^build fuzz_$target:" "$BUILD/build.ninja" ||
      die "the target $target is built with libraries that are not here. First run: sh packaging/setup.sh --tests --no-build"
  done
  # shellcheck disable=SC2086 # a list of words
  logged "the build (fuzz)" cmake --build "$BUILD" --target $programs
}

packs() { python3 -B "$FM_ROOT/tests/fuzz/pack.py" "$@"; }

# fuzz TARGET: leaves the corpus in $run/old, new inputs in $run/new, its logs in $run, and its exit status in $status.
fuzz() {
  run=$FM_ROOT/$BUILD/run/$1
  rm -rf "$run"
  mkdir -p "$run/new" "$run/old"
  [ ! -e "$CORPUS/$1.pack" ] || packs unpack "$CORPUS/$1.pack" "$run/old"
  say "fuzzing $1 for $((seconds / 60)) min"
  set -- "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=256 -print_final_stats=1 \
    -artifact_prefix="$FINDINGS/$1-" -max_len="$(max_len "$1")" "$run/new" "$run/old" "$FM_ROOT/tests/fuzz/seeds/$1"
  dictionary=$FM_ROOT/tests/fuzz/$1.dict
  [ ! -f "$dictionary" ] || set -- "$@" -dict="$dictionary"
  [ "$jobs" -eq 1 ] || set -- "$@" -jobs="$jobs" -workers="$jobs"
  program=$FM_ROOT/$BUILD/tests-bin/fuzz_$1
  shift
  # Freed memory is used again soon, which is faster than new memory all the time.
  status=0
  (cd "$run" && ASAN_OPTIONS=quarantine_size_mb=16 "$program" "$@" >fuzz.log 2>&1) || status=$?
}

max_len() {
  case $1 in
    framer) echo 12000 ;; # a header may have 8 KiB
    *) echo 4096 ;;
  esac
}

# look_for_findings TARGET: prints them, and leaves their number in $count.
look_for_findings() {
  found=$(find "$FINDINGS" -name "$1-*" -newer "$BUILD/probe" | sort)
  count=$(printf '%s' "$found" | grep -c . || :)
  findings=$((findings + count))
  [ "$count" -eq 0 ] || {
    say "$1: a finding; the input is"
    printf '%s\n' "$found" >&2
    grep -h -A 2 -E 'does not hold|ERROR: |runtime error' "$run/fuzz.log" | head -n 12 >&2
  }
}

# executions: the sum over all processes. With more than one, each has a log.
executions() {
  set -- "$run"/fuzz-*.log
  [ -e "$1" ] || set -- "$run/fuzz.log"
  awk '/^stat::number_of_executed_units:/ { runs += $2 } END { printf "%d", runs }' "$@"
}

# check_run TARGET: sets $ran to whether the target ran until its time was over and exited 0, as it does without a finding.
check_run() {
  ran=yes
  [ "$count" -eq 0 ] || return 0
  [ "$status" -ne 0 ] || [ "$(executions)" -eq 0 ] || return 0
  ran=no
  failures=$((failures + 1))
  say "$1 did not run to its end: exit status $status, $(executions) executions. The end of $run/fuzz.log:"
  tail -n 5 "$run/fuzz.log" >&2
}

# minimise TARGET: finds the smallest set of inputs, old and new, with the same coverage. A merge drops inputs that fail.
minimise() {
  if [ "$count" -ne 0 ] || [ "$ran" = no ]; then
    say "the corpus of $1 stays as it is"
    return 0
  fi
  mkdir "$run/least"
  if "$FM_ROOT/$BUILD/tests-bin/fuzz_$1" -merge=1 -set_cover_merge=1 "$run/least" "$run/old" "$run/new" \
    >"$run/merge.log" 2>&1 && [ -n "$(find "$run/least" -type f)" ] && packs pack "$run/least" "$CORPUS/$1.pack"; then
    return 0
  fi
  failures=$((failures + 1))
  say "the corpus of $1 stays as it is: it could not be merged. See $run/merge.log"
}

# Sums the counters of all processes.
add_row() {
  row_of=$1
  set -- "$run"/fuzz-*.log
  [ -e "$1" ] || set -- "$run/fuzz.log"
  row=$(awk -v target="$row_of" -v runs="$(executions)" '
    /^stat::average_exec_per_sec:/ { speed += $2 }
    / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:" && $(i + 1) > edges) edges = $(i + 1) }
    END { printf "%-9s %12d %8d %7d", target, runs, speed, edges }' "$@")
  entries=$(packs list "$CORPUS/$row_of.pack" | wc -l)
  bytes=$(packs list "$CORPUS/$row_of.pack" | awk '{ sum += $2 } END { print sum + 0 }')
  rows="$rows$row $(printf '%7d %8d %9d' "$entries" "$bytes" "$count")
"
}

print_table() {
  echo "target      executions   exec/s   edges entries    bytes  findings"
  printf '%s' "$rows"
}

main "$@"
