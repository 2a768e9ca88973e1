#!/usr/bin/env bash
# The configuration files for other programs, read by these: systemd's unit and its hardening, HAProxy's.
# usage: unit_test.sh
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The program need not be installed for its unit to be read.
sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$source_dir/deploy/systemd/attend.service" >"$scratch/attend.service"
systemd-analyze verify --man=no "$scratch/attend.service"
# 0 is shut in, 10 is wide open; threshold in tenths.
systemd-analyze security --offline=true --threshold=20 "$scratch/attend.service" | tail -n 1

haproxy -c -f "$source_dir/deploy/haproxy/haproxy.cfg"
