#!/bin/sh
# Load on the helper with the fake engine, in parts. Prints one table; the exit status is 1 if a row says FAIL. Run nothing
# else meanwhile. Needs what packaging/test.sh installs; FM_BUILD names another build folder, used as it is.
#
# usage: sh tests/load/run.sh [PART...]       about four minutes; by default all parts except soak
#        sh tests/load/run.sh soak MINUTES
#   pings    1,000,000 pipelined pings over pipes and over sockets, with a serial probe at the same time
#   streams  64 streams x 10,000 deltas
#   cancels  10,000 races of create and cancel
#   spawns   1,000 starts and ends, 50 with an engine
#   store    100,000 responses through a store of 64 MiB
#   slow     hosts that read 1 KiB/s, nothing, and nothing while they flood
#   beside   a minute of pings on one processor, during answers and instructions of 4 MB, 8 streams, and prompts of
#            2,000 tokens that the real model reads
set -eu
cd "$(dirname -- "$0")/../.."
FM_ROOT=$(pwd)
case ${1-} in
  soak) set -- --minutes "${2:-1}" soak ;;
  '') set -- pings streams cancels spawns store slow beside ;;
  -*) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2 && exit 64 ;;
esac
if [ -z "${FM_BUILD-}" ]; then
  FM_BUILD=build
  sh packaging/setup.sh --tests
fi
[ ! -r /proc/loadavg ] || echo "$(nproc) processors, load average $(cut -d ' ' -f 1-3 /proc/loadavg)"
set -- --bin "$FM_BUILD/bin" "$@"
for model in "$FM_BUILD"/models/*.gguf; do
  [ ! -f "$model" ] || set -- --model "$model" "$@"
done
exec "$FM_BUILD/tests-bin/load" "$@"
