#!/usr/bin/env bash
# Runs the tests of a sanitizer build. usage: tests/sanitized.sh BUILD_DIR [ctest arguments]
set -euo pipefail
build=$1
shift
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp
export TSAN_OPTIONS=halt_on_error=1:suppressions=$PWD/tests/tsan.supp
exec ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@"
