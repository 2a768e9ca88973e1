#!/usr/bin/env bash
# What takes what in the image `attend`: its ten largest files, and the sum of all.
# usage: deploy/image-size.sh [IMAGE]
set -euo pipefail
container=$(docker create "${1:-attend}")
trap 'docker rm "$container" >/dev/null' EXIT
files=$(docker export "$container" | tar -tv | awk '/^-/ {print $3, $6}' | sort -rn)
awk 'NR <= 10 {printf "%6.1f MB  %s\n", $1 / 1e6, $2} {sum += $1} END {printf "%6.1f MB  in all\n", sum / 1e6}' <<<"$files"
