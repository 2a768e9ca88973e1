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

"$scratch/prefix/bin/attend-server" --grpc-address localhost:0 --metrics-address localhost:0 \
  --drain-delay 0s >"$scratch/log" 2>&1 &
server=$!
until address=$(grep -o 'grpc=[^ ]*' "$scratch/log"); do
  kill -0 $server || { cat "$scratch/log"; exit 1; }
  sleep 0.05
done
[ "$("$scratch/build/outside" "${address#grpc=}")" = demo ] || { echo "the demo model is not listed"; exit 1; }
kill -TERM $server
wait $server
server=
echo "an outside project builds against the installed client and is answered"
