# Sourced by the container tests: a Docker engine of the test's own (data root, socket), the base
# image, and the image under test. Needs root and the `containers` set of deploy/setup.sh.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
engine_dir=${ATTEND_ENGINE_DIR:-/var/tmp/attend-engine}
export DOCKER_HOST=unix://$engine_dir/docker.sock
base=debian:trixie-slim

fail() { echo "FAILED: $*" >&2; exit 1; }

# await SECONDS COMMAND...: polls the command until it succeeds.
await() {
  local tries=$(($1 * 5))
  shift
  for ((i = 0; i < tries; i++)); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.2
  done
  fail "did not happen in time: $*"
}

start_engine() {
  mkdir -p "$engine_dir"
  /usr/sbin/dockerd --data-root "$engine_dir/data" --exec-root "$engine_dir/exec" \
    --pidfile "$engine_dir/pid" -H "$DOCKER_HOST" >"$engine_dir/log" 2>&1 &
  trap stop_engine EXIT
  await 60 docker info || { tail -n 20 "$engine_dir/log"; exit 1; }
}

stop_engine() {
  local running
  running=$(docker ps -q 2>/dev/null) && [ -n "$running" ] && docker rm -f $running >/dev/null
  [ -f "$engine_dir/pid" ] && kill "$(cat "$engine_dir/pid")" 2>/dev/null
  wait 2>/dev/null || true
}

# import_rootfs TAG PACKAGE...: an image of the distribution with a few packages more.
import_rootfs() {
  local tag=$1 rootfs
  shift
  rootfs=$(mktemp -d "$engine_dir/rootfs.XXXXXX")
  debootstrap --variant=minbase ${1:+--include="$(IFS=,; echo "$*")"} trixie "$rootfs" >"$engine_dir/debootstrap.log"
  # The machine's own way to its package mirror, so that a build can install packages too.
  cp /etc/apt/apt.conf.d/*registry* /etc/apt/apt.conf.d/*proxy* "$rootfs/etc/apt/apt.conf.d/" 2>/dev/null || true
  tar -C "$rootfs" -c . | docker import - "$tag" >/dev/null
  rm -rf "$rootfs"
}

# Where no public registry is reached, the base image is made from the distribution's packages.
base_image() {
  docker image inspect "$base" >/dev/null 2>&1 && return
  timeout 60 docker pull -q "$base" 2>/dev/null || import_rootfs "$base"
}

# Content decides whether the image is built again: Docker's own layer cache. With ATTEND_IMAGE_AS_IS=1 the
# image `attend` is taken as it is.
attend_image() {
  [ "${ATTEND_IMAGE_AS_IS:-}" = 1 ] && return
  base_image
  docker build --network host -q -f "$source_dir/deploy/Dockerfile" -t attend "$source_dir" >/dev/null
}
