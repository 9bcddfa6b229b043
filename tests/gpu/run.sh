#!/bin/sh
# Tests the GPU, by Vulkan, on Mesa's software driver: it needs no GPU, and takes ten minutes. It shows that the same prompts
# give the same text as on the CPU, that a failing device costs at most the current answer, and what the sandbox refuses.
# Installs Mesa's drivers (apt) and the Vulkan library of packaging/pins.
#
# usage: sh tests/gpu/run.sh [TEST...]
set -eu
cd "$(dirname -- "$0")/../.."
sh packaging/setup.sh --gpu
cmake --build build --target fm-engine-fake
mkdir -p build/tests-bin
cc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -shared -fPIC -O1 -o build/tests-bin/libfailing_vulkan.so tests/gpu/driver.c -ldl
lib=$PWD/build/deps/llama/lib
cc -std=c17 -Wall -Wextra -Werror -O1 -Ibuild/deps/llama/src/include -Ibuild/deps/llama/src/ggml/include \
  -o build/tests-bin/full_weights tests/gpu/full_weights.c "$lib"/libllama.v*.so "$lib"/libggml.v*.so "$lib"/libggml-base.so \
  "-Wl,-rpath,$lib"
build/tests-bin/full_weights build/models/*.gguf build/tests-bin/full-weights.gguf >build/tests-bin/full_weights.log 2>&1
cat >build/tests-bin/failing_vulkan.json <<END
{"file_format_version": "1.0.0", "ICD": {"library_path": "$PWD/build/tests-bin/libfailing_vulkan.so", "api_version": "1.3.0"}}
END
FM_BIN=$PWD/build/bin FM_GPU_DIR=$PWD/build/deps/vulkan exec python3 -B tests/gpu/test_gpu.py "$@"
