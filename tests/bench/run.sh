#!/bin/sh
# Measures speed and size of the helper in one run, and prints each figure with the one that it is compared with. Takes about two
# minutes; run nothing else meanwhile. Needs what packaging/test.sh installs.
#
# usage: sh tests/bench/run.sh [pings] [spawn] [model]
set -eu
cd "$(dirname -- "$0")/../.."
FM_ROOT=$(pwd)
sh packaging/setup.sh --tests
# shellcheck source=packaging/lib.sh
. packaging/lib.sh
use_node
exec node tests/bench/bench.mjs "$@"
