#!/bin/sh
# Speed and size of the helper, each with the figure that it is compared with, in one run. Takes about two minutes; run nothing
# else meanwhile. Needs what packaging/test.sh installs.
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
