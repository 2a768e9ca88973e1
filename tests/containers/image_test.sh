#!/usr/bin/env bash
# The image for real: size, user, read-only root, first answer, health, limits, SIGTERM.
source "$(dirname "$0")/engine.sh"
start_engine
began=$SECONDS
attend_image
echo "built in $((SECONDS - began)) s"

bytes=$(docker image inspect -f '{{.Size}}' attend)
echo "image size: $((bytes / 1000000)) MB"
"$source_dir/deploy/image-size.sh"
((bytes <= 80000000)) || fail "the image has $bytes bytes; 80 MB is the limit"

[ "$(docker image inspect -f '{{.Config.User}}' attend)" = 65532:65532 ] || fail "not the numeric user"

logged() { docker logs "$1" 2>&1 | grep -q "$2"; }
healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$1")" = healthy ]; }
run() { docker run -d --read-only --cap-drop ALL --security-opt no-new-privileges "$@"; }

one=$(run -p 127.0.0.1::8001 -p 127.0.0.1::8002 attend)
await 30 logged "$one" listening
docker exec "$one" /usr/bin/attend health || fail "not healthy right after it listens"
answer=$(docker exec "$one" /usr/bin/attend explain)
grep -q cat <<<"$answer" || fail "no answer from the demo model: $answer"
metrics=$(docker port "$one" 8002/tcp | head -n 1)
curl -fsS "http://$metrics/metrics" | grep -q '^attend_' || fail "no metrics on the published port"
await 60 healthy "$one"
docker stop -t 45 "$one" >/dev/null
[ "$(docker inspect -f '{{.State.ExitCode}}' "$one")" = 0 ] || fail "SIGTERM did not end in exit 0"

# What a small container may hold bounds what its server takes.
small=$(run --memory 512m --cpus 1.5 -p 127.0.0.1::8002 attend)
await 30 logged "$small" listening
docker logs "$small" 2>&1 | grep listening
logged "$small" ' threads=1 ' || fail "1.5 CPUs must give one thread"
logged "$small" " max_queued_bytes=$((128 << 20)) " || fail "512 MB must give a quarter of them to requests"
metrics=$(docker port "$small" 8002/tcp | head -n 1)
exposed=$(curl -fsS "http://$metrics/metrics")
grep -qx 'attend_workers 1' <<<"$exposed" || fail "one worker is not told"
grep -qx 'attend_queue_limit_cost_seconds 1' <<<"$exposed" || fail "one worker must give a second of queue"
grep -qx "attend_held_limit_bytes $((128 << 20))" <<<"$exposed" || fail "the bound on bytes is not told"
docker rm -f "$small" >/dev/null
echo "the image holds what it promises"
