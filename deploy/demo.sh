#!/usr/bin/env bash
# Starts attend-server with its embedded demo model on free ports, asks it one question, prints the
# answer, stops it. Exits 0 only if all of that went well.
# usage: deploy/demo.sh BIN_DIR      (the folder of attend-server and attend)
set -euo pipefail

bin=${1:?usage: deploy/demo.sh BIN_DIR}
folder=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT

mkfifo "$folder/log"
"$bin/attend-server" --grpc-address localhost:0 --metrics-address localhost:0 --drain-delay 0s \
  >"$folder/log" 2>&1 &
server=$!
exec 3<"$folder/log"

# The line that says the server is up says on which port.
address=
while [ -z "$address" ] && IFS= read -r -t 60 -u 3 line; do
  echo "$line"
  if [[ $line =~ grpc=([^[:space:]]+) ]]; then address=${BASH_REMATCH[1]}; fi
done
if [ -z "$address" ]; then
  echo "demo: the server did not start" >&2
  exit 1
fi
cat <&3 &
log=$!

"$bin/attend" health --target "$address" --wait 30s >/dev/null
echo
echo '$ attend explain "The cat sat down because it was tired"'
"$bin/attend" explain --target "$address" "The cat sat down because it was tired"
echo

kill -TERM "$server"
stopped=0
wait "$server" || stopped=$?
server=
wait "$log"
if [ "$stopped" -ne 0 ]; then
  echo "demo: the server stopped with exit code $stopped" >&2
  exit 1
fi
