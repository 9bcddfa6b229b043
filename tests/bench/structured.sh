#!/bin/sh
# Structured output beside llama.cpp's own server of the same release, in one run: a JSON object with a schema, and free text
# against text that a grammar leaves free. Builds llama-server first where it is not there (some ten minutes on two cores).
# Takes about three minutes then; let nothing else run meanwhile.
#
# usage: sh tests/bench/structured.sh
set -eu
FM_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# shellcheck source=packaging/lib.sh
. "$FM_ROOT/packaging/lib.sh"
SERVER=build/llama-server

sh packaging/setup.sh --tests
use_node
if [ ! -x "$SERVER/bin/llama-server" ]; then
  say "building llama-server"
  # As the libraries that packaging/pins names were built.
  logged "cmake for llama-server" cmake -G Ninja -S "$DEPS/llama/src" -B "$SERVER" -DCMAKE_BUILD_TYPE=Release \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_OPENSSL=OFF \
    -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON -DGGML_NATIVE=OFF -DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON \
    -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF
  logged "the build of llama-server" cmake --build "$SERVER" --target llama-server
fi
exec node tests/bench/structured.mjs
