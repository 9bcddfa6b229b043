#!/bin/sh
# Compares the engine `remote` with the stock SDK that talks to the same server: builds llama-server, then runs remote.mjs.
#
# usage: sh tests/bench/remote.sh [ROUNDS]
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
# shellcheck source=tests/bench/server.sh
. tests/bench/server.sh
build_server
use_node
exec node tests/bench/remote.mjs "$@"
