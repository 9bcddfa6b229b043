#!/bin/sh
# Compares structured output with llama.cpp's own server of the same release: a JSON object with a schema. Also compares free text
# with text under a grammar that allows everything. Builds llama-server first if it is missing (about five minutes on two cores).
# Then it takes about three minutes; run nothing else meanwhile.
#
# usage: sh tests/bench/structured.sh
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
# shellcheck source=tests/bench/server.sh
. "$FM_ROOT/tests/bench/server.sh"

sh packaging/setup.sh --tests
use_node
lock
build_server
unlock
exec node tests/bench/structured.mjs
