#!/usr/bin/env bash
# sanitizers_short.sh SOURCE BUILD: the short form of `make test-sanitizers`: the loaders and the core on hostile
# input under ASan and UBSan, what threads share under TSan.
set -euo pipefail
source=$1
build=$2
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

run() {  # SANITIZERS TARGET...
  local kind=$1 folder=$build/sanitized-${1%%,*}
  shift
  cmake -S "$source" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1" \
    -DATTEND_UNITY=ON -DATTEND_TESTS=ON -DATTEND_SANITIZE="$kind" >/dev/null
  cmake --build "$folder" --target "$@"
  local names
  names=$(IFS='|'; echo "$*")
  (cd "$source" && tests/sanitized.sh "$folder" --no-tests=error -R "^(fuzz\.)?($names)(\.|$)")
}

run address,undefined core_attention_refusal_test core_simd_rows_test safetensors_fuzz attend_json_fuzz
run thread core_executor_test core_attention_job_test batching_request_queue_test batching_batcher_stress_test
