#!/usr/bin/env bash
# Installs what Attend is built and tested with from the distribution (Debian 12 or 13, or a derivative).
# Idempotent: does nothing, and needs no root, when every package is already there.
# usage: deploy/setup.sh [build|test|containers|peers]...   (default: build)
set -euo pipefail

build=(g++ cmake make ninja-build pkg-config ccache git ca-certificates
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  libdnnl-dev libhwy-dev libspdlog-dev prometheus-cpp-dev nlohmann-json3-dev libcli11-dev
  libgtest-dev libgmock-dev libbenchmark-dev)
test=(python3 python3-numpy python3-yaml python3-jsonschema curl)
containers=(docker.io docker-compose iptables debootstrap curl prometheus haproxy systemd)
peers=(python3-torch libopenblas0-pthread)

wanted=()
for set in "${@:-build}"; do
  case "$set" in
    build) wanted+=("${build[@]}") ;;
    test) wanted+=("${build[@]}" "${test[@]}") ;;
    containers) wanted+=("${containers[@]}") ;;
    peers) wanted+=("${peers[@]}") ;;
    *) echo "setup.sh: unknown set '$set'; expected build, test, containers or peers" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#wanted[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: needs root to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup: done"
