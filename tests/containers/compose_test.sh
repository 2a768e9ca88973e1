#!/usr/bin/env bash
# deploy/compose.yaml for real: the server, Prometheus that finds it by its name, the load profile. Where
# Prometheus' public image can't be pulled, one made of the distribution's package stands for it.
# usage: compose_test.sh     (Grafana is checked by tests/deploy: the distribution has none)
source "$(dirname "$0")/engine.sh"
start_engine
attend_image

prometheus_image() {
  docker image inspect prom/prometheus:v2.53.0 >/dev/null 2>&1 && return
  timeout 60 docker pull -q prom/prometheus:v2.53.0 2>/dev/null && return
  base_image
  docker build --network host -q -t prom/prometheus:v2.53.0 - >/dev/null <<EOF
FROM $base
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus >/dev/null && mkdir /prometheus
ENTRYPOINT ["/usr/bin/prometheus"]
EOF
}
prometheus_image

compose() { docker-compose --project-name attend-test -f "$source_dir/deploy/compose.yaml" "$@"; }
end_compose() {
  compose --profile load down --timeout 45 >/dev/null 2>&1 || true
  stop_engine
}
trap end_compose EXIT

compose up -d --no-build attend prometheus
container() { compose ps -q "$1"; }
healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' "$(container attend)")" = healthy ]; }
await 60 healthy

limits=$(docker inspect -f '{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}}' "$(container attend)")
[ "$limits" = "2147483648 2000000000" ] || fail "the limits did not arrive: $limits"

# asked QUERY: whether Prometheus has a sample above 0 for it.
asked() {
  curl -fsS --data-urlencode "query=$1" http://localhost:9090/api/v1/query | grep -q '"value":\[[^]]*,"[1-9]'
}
await 60 asked 'up{job="attend"}'

# By the service's name, from a container of its own, as long as its command says.
compose --profile load run --rm load load --target attend:8001 --model demo --rate 100 --duration 10s \
  --lengths 8..64 --seed 1 | tee /dev/stderr | grep -q 'answered' || fail "the load was not answered"
await 60 asked 'sum(attend_requests_total{code="OK"}) > 500'
await 60 asked 'attend:request_duration_seconds:p99_5m > bool 0'

server=$(container attend)
compose stop --timeout 45 attend
[ "$(docker inspect -f '{{.State.ExitCode}}' "$server")" = 0 ] || fail "the server did not drain to exit 0"
echo "compose: the server is healthy, Prometheus scrapes it by its name, the load is answered"
