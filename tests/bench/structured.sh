#!/bin/sh
# Structured output beside llama.cpp's own server of the same release, in one run: a JSON object with a schema, and free text
# against text that a grammar leaves free. Builds llama-server first where it is not there (some five minutes on two cores).
# Takes about three minutes then; let nothing else run meanwhile.
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
