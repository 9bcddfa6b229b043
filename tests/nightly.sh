#!/bin/sh
# Runs what takes too long for packaging/test.sh, one part after the other: each is a separate script or a test with larger
# numbers. If a part fails, the others still run. A table of all parts comes last; the exit status is 1 if one failed. First
# builds what it needs; takes a night. Run nothing else meanwhile, or leave `load` and `soak` out.
#
# usage: sh tests/nightly.sh [PART...]
#   FM_MINUTES=20  how long each target is fuzzed, and how long the part soak takes
#
#   places      the texts that the mutations replace are still in the code; seconds
#   mutations   each check of the helper is taken out in turn, and a test must go red
#   mutations-js  the same for the npm package
#   failing     all failing allocations, threads, reads and writes, in the release build and under the address sanitizer
#   properties  session mode on 2,000 random inputs a property and 50,000 random lines
#   model       session mode with the real model: 50 messages of each format
#   jobs        1,000 random jobs at once on the llama engine, 50 of them as in a fresh process
#   sanitized   the llama engine's contract, and 20 random jobs at once, under the address and the thread sanitizer
#   flips       10,000 model files with a flipped bit
#   requests    20,000 mutated requests to the npm package
#   schemas     the JSON Schema Test Suite with 20 texts a schema, and patterns with control characters
#   mixes       1,000 random requests to the whole helper with the real models, 200 of them repeatable
#   load        load in large numbers
#   soak        all of it at random, for long; then the same with the real models
#   coverage    line and branch coverage
#   fuzz        all fuzz targets; needs clang
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"

PARTS="places mutations mutations-js failing properties model jobs sanitized flips requests schemas mixes load soak coverage fuzz"
MINUTES=${FM_MINUTES:-20}

main() {
  for part; do
    case " $PARTS " in
      *" $part "*) ;;
      *) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2 && exit 64 ;;
    esac
  done
  # shellcheck disable=SC2086 # a list of words
  [ $# -gt 0 ] || set -- $PARTS
  rows=
  failed=0
  for part; do run_part "$part"; done
  printf '\n%-13s %8s\n%s' "part" "minutes" "$rows"
  [ "$failed" -eq 0 ]
}

# run_part PART: adds its row, and counts a failure if it failed.
run_part() {
  printf '\n== %s\n' "$1"
  begun=$(date +%s)
  outcome=ok
  # A separate script, which ends at the first command that fails.
  FM_PART=$1 sh "$FM_ROOT/tests/nightly.sh" || outcome=FAILED
  [ "$outcome" = ok ] || failed=$((failed + 1))
  rows="$rows$(printf '%-13s %8d  %s' "$1" $((($(date +%s) - begun + 30) / 60)) "$outcome")
"
}

run_one() {
  case $1 in
    places | fuzz | coverage) ;;
    *) sh packaging/setup.sh --tests ;;
  esac
  use_node
  case $1 in
    places)
      python3 -B tests/mutations/run.py --check
      python3 -B tests/mutations/run_js.py --check
      ;;
    mutations) python3 -B tests/mutations/run.py ;;
    mutations-js) python3 -B tests/mutations/run_js.py ;;
    failing)
      build_all default build
      FM_BIN=build/bin python3 -B tests/failing/sessions.py
      build_all asan build/asan
      FM_BIN=build/asan/bin FM_SLOW=4 FM_SANITIZE=address python3 -B tests/failing/sessions.py
      ;;
    properties)
      build_all default build
      FM_ITERATIONS=2000 python3 -B tests/e2e/test_session_properties.py
      FM_LINES=50000 python3 -B tests/e2e/test_sessions.py Lines
      ;;
    model)
      build_all default build
      FM_MESSAGES=50 python3 -B tests/e2e/test_session_model.py
      ;;
    jobs)
      build_all default build
      set -- build/models/*.gguf
      python3 -B tests/contract/mixes.py build/bin/fm-engine-llama "$1" 1000 "" 50
      ;;
    sanitized)
      build_all asan build/asan
      sanitized address build/asan
      build_all tsan build/tsan
      # The same as in CMakePresets.json and packaging/test.sh.
      export TSAN_OPTIONS=ignore_noninstrumented_modules=1:atexit_sleep_ms=50
      sanitized thread build/tsan
      ;;
    flips)
      build_all default build
      FM_FLIPS=10000 python3 -B tests/e2e/test_hostile_models.py Malformed.test_bits
      ;;
    requests)
      build_all default build
      build_js
      FM_MUTATIONS=20000 node --test tests/js/mutated.test.mjs
      ;;
    schemas)
      build_all default build
      node tests/schema/suite.mjs
      node tests/schema/patterns.mjs
      ;;
    mixes)
      build_all default build
      python3 -B tests/e2e/mixes.py 1000 "" 200
      ;;
    load)
      build_all default build
      sh tests/load/run.sh
      ;;
    soak)
      build_all default build
      sh tests/load/run.sh soak "$MINUTES"
      python3 -B tests/e2e/soak.py "$MINUTES"
      ;;
    coverage) sh tests/coverage.sh ;;
    fuzz) sh tests/fuzz/run.sh "$MINUTES" ;;
  esac
}

# sanitized SANITIZER FOLDER: the tests that this build normally leaves out.
sanitized() {
  for model in build/models/*.gguf; do break; done
  export FM_SLOW=4 FM_SANITIZE="$1" ASAN_OPTIONS=detect_leaks=1
  without_aslr python3 -B tests/contract/test_engine.py "$2/bin/fm-engine-llama" "$model"
  without_aslr python3 -B tests/contract/mixes.py "$2/bin/fm-engine-llama" "$model" 20
}

build_all() {
  lock
  build_native "$@"
  unlock
}

if [ -n "${FM_PART-}" ]; then
  part=$FM_PART
  unset FM_PART
  run_one "$part"
else
  main "$@"
fi
