#!/usr/bin/env bash
# run.sh BUILD: installs the peers in BUILD/peers and runs them beside BUILD/bin/attend-bench.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
[ -x "$build/peers/bin/python" ] || python3 -m venv "$build/peers"
"$build/peers/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
# PyTorch where it is there already, or as a CPU build; its GPU build is not worth the gigabytes.
exec "$build/peers/bin/python" "$here/side_by_side.py" "$build/bin/attend-bench"
