#!/bin/sh
# Measures the line and branch coverage of protocol/ and of helper/, by ctest on a build without llama.cpp and llguidance. So
# engine/llama is left out, and guide.c and grammar.c of engine/guide. Exits 1 when a test fails or branch coverage is below the
# bounds. Takes about two minutes; the detailed report is build/coverage/report/index.html.
#
# usage: sh tests/coverage.sh [CTEST-OPTION...]
set -eu
cd "$(dirname -- "$0")/.."
DIR=build/coverage
TOOLS=$DIR/tools
PROTOCOL_BRANCHES=95
HELPER_BRANCHES=85

main() {
  get_gcovr
  cmake --preset coverage >$DIR/cmake.log
  cmake --build $DIR >$DIR/build.log || {
    tail -n 40 $DIR/build.log
    return 1
  }
  find $DIR -name '*.gcda' -delete
  failed=0
  # gcov's own code does not survive a failing malloc, so the test `failing` would show nothing about our code.
  ctest --test-dir $DIR --output-on-failure --exclude-regex '^e2e.failing' "$@" || failed=1
  gcovr --json $DIR/coverage.json $DIR
  mkdir -p $DIR/report
  gcovr -a $DIR/coverage.json --filter 'protocol/' --filter 'helper/' --html-details $DIR/report/index.html
  report protocol "$PROTOCOL_BRANCHES" --filter 'protocol/'
  report helper "$HELPER_BRANCHES" --filter 'helper/'
  return "$failed"
}

get_gcovr() {
  mkdir -p $TOOLS
  cmp -s tests/coverage-tools.txt $TOOLS/.installed && return 0
  python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --upgrade --target $TOOLS \
    -r tests/coverage-tools.txt
  cp tests/coverage-tools.txt $TOOLS/.installed
}

gcovr() {
  PYTHONPATH=$TOOLS python3 -m gcovr --root . --exclude 'helper/engine/llama/' --exclude 'helper/engine/guide/g(uide|rammar)' \
    --exclude 'build/' --exclude 'tests/' --exclude 'helper/base/platform_macos.c' "$@"
}

# report NAME PERCENT FILTER...: prints the table of each kind, and fails below PERCENT of the branches.
report() {
  name=$1
  percent=$2
  shift 2
  printf '\n== %s/\n' "$name"
  gcovr -a $DIR/coverage.json "$@" --txt-metric=branch --txt --txt-summary --fail-under-branch "$percent" || failed=1
}

main "$@"
