#!/usr/bin/env bash
# Installs into an empty prefix, builds an outside project against the client package, and lets it ask
# the installed server. usage: install_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$1 build_dir=$2
scratch=$(mktemp -d)
trap 'kill $server 2>/dev/null || true; rm -rf "$scratch"' EXIT
server=

cmake --install "$build_dir" --prefix "$scratch/prefix" >/dev/null
cmake -S "$source_dir/tests/install/outside" -B "$scratch/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$scratch/prefix" >/dev/null
cmake --build "$scratch/build" >/dev/null

# The program asks localhost:8001, as the README says.
"$scratch/prefix/bin/attend-server" --metrics-address localhost:0 --drain-delay 0s >"$scratch/log" 2>&1 &
server=$!
"$scratch/prefix/bin/attend" health --wait 30s
[ "$("$scratch/build/outside")" = "24 values" ] || { cat "$scratch/log"; exit 1; }
kill -TERM $server
wait $server
server=
echo "an outside project builds against the installed client and is answered"
