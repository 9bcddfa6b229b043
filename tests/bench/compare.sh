#!/bin/sh
# Speed beside llama.cpp's own server of the same release, its bare loop and node-llama-cpp: the same requests to each, in
# turns. Prints a table of medians and ratios, and a line for each row that is lost; progress goes to stderr, all figures to
# build/compare.json, and a picture of them to build/compare.svg. Builds llama-server first where it is not there (some five
# minutes on two cores). Takes about ten minutes then; let nothing else run meanwhile.
#
# Only the servers differ: llama-server, fm-engine-llama and node-llama-cpp run on the same prebuilt libraries of llama.cpp.
#
# usage: sh tests/bench/compare.sh [--rounds N] [--rows A,B] [--quick]
#   --rounds N   how often each of a row has its turn; 5 if absent
#   --rows A,B   only these, by the numbers of the table
#   --quick      one round with few tokens: shows that all works, no more
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
# shellcheck source=tests/bench/server.sh
. "$FM_ROOT/tests/bench/server.sh"

case ${1-} in -h | --help) exec python3 -B tests/bench/compare.py --help ;; esac
sh packaging/setup.sh --tests
use_node
lock
build_server
build_native default build bare_llama
# Without the libraries for other machines: npm ci wants all of them, and not every registry has them.
logged "npm install in tests/bench/peers" npm install --prefix tests/bench/peers --ignore-scripts --omit=optional --no-save \
  --no-audit --no-fund --no-update-notifier || say "without node-llama-cpp"
unlock
python3 -B tests/bench/compare.py "$@" && status=0 || status=$?
[ "$status" -gt 1 ] || python3 -B tests/bench/chart.py build/compare.json build/compare.svg >/dev/null
exit "$status"
