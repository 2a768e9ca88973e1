#!/usr/bin/env bash
# run.sh BUILD [THREADS]...: installs the peers in BUILD/peers and runs them beside BUILD/bin/attend-bench.
# PyTorch is the distribution's, with OpenBLAS: the registry's build for GPUs weighs gigabytes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
[ -x "$build/peers/bin/python" ] || /usr/bin/python3 -m venv --system-site-packages "$build/peers"
"$build/peers/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OMP_NUM_THREADS
exec "$build/peers/bin/python" "$here/side_by_side.py" "$build/bin/attend-bench" "${@:2}"
