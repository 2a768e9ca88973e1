#include "server/observe/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "server/observe/buckets.h"
#include "server/observe/process_metrics.h"

namespace attend {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;

double Seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string Text(absl::string_view text) { return std::string(text); }

// What a call that named no served model counts for.
constexpr absl::string_view kUnknownModel = "unknown";

// What is known of one model, looked up once by its name.
struct OfModel {
  Counter& items;
  Histogram& queue_seconds;
  Histogram& compute_seconds;
  Histogram& request_items;
  Histogram& batch_requests;
  Histogram& batch_items;
  Histogram& batch_seconds;
  Counter& predicted_seconds;
  Counter& measured_seconds;
};

constexpr RefusalReason kReasons[] = {RefusalReason::kQueueFull, RefusalReason::kTooLarge,
                                      RefusalReason::kExpired,   RefusalReason::kPredicted,
                                      RefusalReason::kCancelled, RefusalReason::kDraining};

template <typename Metric>
Family<Metric>& Make(prometheus::Registry& registry, const char* name, const char* help);

template <>
Family<Counter>& Make(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
template <>
Family<Gauge>& Make(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
template <>
Family<Histogram>& Make(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::Impl : public prometheus::Collectable {
  prometheus::Registry registry;
  Family<Counter>& requests =
      Make<Counter>(registry, "attend_requests_total", "Requests answered, by outcome");
  Family<Histogram>& request_seconds = Make<Histogram>(
      registry, "attend_request_duration_seconds", "Arrival of a request to its answer's sending");
  Family<Counter>& items =
      Make<Counter>(registry, "attend_items_total", "Items of the sequences computed");
  Family<Histogram>& queue_seconds = Make<Histogram>(registry, "attend_queue_duration_seconds",
                                                     "Arrival of a request to its batch's start");
  Family<Histogram>& compute_seconds =
      Make<Histogram>(registry, "attend_compute_duration_seconds",
                      "Start of a request's batch to the request's own last tile");
  Family<Histogram>& request_items =
      Make<Histogram>(registry, "attend_request_items", "Items of a computed sequence");
  Family<Histogram>& batch_requests =
      Make<Histogram>(registry, "attend_batch_requests", "Requests in a batch");
  Family<Histogram>& batch_items =
      Make<Histogram>(registry, "attend_batch_items", "Items in a batch");
  Family<Histogram>& batch_seconds =
      Make<Histogram>(registry, "attend_batch_cost_seconds",
                      "One worker's time for a batch, as predicted when it was closed");
  Family<Counter>& predicted_seconds =
      Make<Counter>(registry, "attend_worker_predicted_seconds_total",
                    "Workers' time for finished batches, as predicted");
  Family<Counter>& measured_seconds = Make<Counter>(
      registry, "attend_worker_seconds_total", "Workers' time for finished batches, as measured");
  Family<Counter>& refused =
      Make<Counter>(registry, "attend_requests_refused_total", "Requests not computed, by reason");
  Family<Counter>& model_changes =
      Make<Counter>(registry, "attend_model_changes_total",
                    "Models loaded, failed to load or removed, since the start");
  Family<Gauge>& model_load_seconds =
      Make<Gauge>(registry, "attend_model_load_seconds",
                  "What a model's last load took: reading, checking, measuring its cost");
  Gauge& queued_requests = One("attend_queue_requests", "Requests waiting for a batch");
  Gauge& queued_items = One("attend_queue_items", "Items waiting for a batch");
  Gauge& queued_seconds =
      One("attend_queue_cost_seconds", "One worker's time for what waits, as predicted");
  Gauge& held_bytes =
      One("attend_held_bytes", "Bytes of requests that wait or are being computed, with answers");
  Gauge& queued_requests_limit =
      One("attend_queue_limit_requests", "Waiting requests beyond which one is refused");
  Gauge& queued_seconds_limit =
      One("attend_queue_limit_cost_seconds", "Waiting work beyond which a request is refused");
  Gauge& held_bytes_limit =
      One("attend_held_limit_bytes", "Held bytes beyond which a request is refused");
  Gauge& workers = One("attend_workers", "Threads that compute");
  Gauge& busy_workers = One("attend_workers_busy", "Threads that compute at this moment");
  Gauge& stalled =
      One("attend_stalled", "1 while runnable work has made no progress for the stall timeout");
  Gauge& open_jobs = One("attend_batches_running", "Batches begun and not finished");
  Counter& flop = Make<Counter>(registry, "attend_flop_total",
                                "Floating-point operations computed; its rate is FLOP/s")
                      .Add({});
  Gauge& primitives = One("attend_primitive_cache_size", "oneDNN primitives held");
  Gauge& primitives_capacity =
      One("attend_primitive_cache_capacity", "oneDNN primitives that are held at most");
  Counter& primitive_misses =
      Make<Counter>(registry, "attend_primitive_cache_misses_total", "oneDNN primitives created")
          .Add({});
  Counter& refused_connections =
      Make<Counter>(registry, "attend_connections_refused_total",
                    "Connections closed at once because there were too many")
          .Add({});
  ProcessMetrics process{registry};

  Mutex mutex;
  std::map<std::string, OfModel, std::less<>> models ABSL_GUARDED_BY(mutex);
  using Outcome = std::pair<Counter*, Histogram*>;
  std::map<std::vector<std::string>, Outcome> outcomes ABSL_GUARDED_BY(mutex);
  // Its own, so that serving never waits for what a scrape asks.
  Mutex sample_mutex;
  std::function<Sampled()> sample ABSL_GUARDED_BY(sample_mutex);

  Gauge& One(const char* name, const char* help) {
    return Make<Gauge>(registry, name, help).Add({});
  }
  OfModel& Of(absl::string_view model);
  OfModel MakeModel(const std::string& name);
  Outcome OutcomeOf(const Exchange& exchange);
  void Sample();

  std::vector<prometheus::MetricFamily> Collect() const override {
    const_cast<Impl*>(this)->Sample();
    return registry.Collect();
  }
};

OfModel Metrics::Impl::MakeModel(const std::string& name) {
  const Labels labels = {{"model", name}};
  OfModel model{items.Add(labels),
                queue_seconds.Add(labels, SecondsBuckets()),
                compute_seconds.Add(labels, SecondsBuckets()),
                request_items.Add(labels, DoublingBuckets(65536)),
                batch_requests.Add(labels, DoublingBuckets(4096)),
                batch_items.Add(labels, DoublingBuckets(65536)),
                batch_seconds.Add(labels, SecondsBuckets()),
                predicted_seconds.Add(labels),
                measured_seconds.Add(labels)};
  // From 0 on, or a first refusal would not show as a rise.
  for (const RefusalReason reason : kReasons) {
    refused.Add({{"model", name}, {"reason", Text(RefusalName(reason))}});
  }
  return model;
}

OfModel& Metrics::Impl::Of(absl::string_view model) {
  MutexLock lock(&mutex);
  const auto found = models.find(Text(model));
  if (found != models.end()) return found->second;
  return models.emplace(Text(model), MakeModel(Text(model))).first->second;
}

Metrics::Impl::Outcome Metrics::Impl::OutcomeOf(const Exchange& exchange) {
  const std::vector<std::string> key = {Text(exchange.method), Text(exchange.model),
                                        Text(exchange.code)};
  MutexLock lock(&mutex);
  Outcome& outcome = outcomes[key];
  if (outcome.first == nullptr) {
    outcome.first = &requests.Add({{"method", key[0]}, {"model", key[1]}, {"code", key[2]}});
    outcome.second =
        &request_seconds.Add({{"method", key[0]}, {"model", key[1]}}, SecondsBuckets());
  }
  return outcome;
}

void Metrics::Impl::Sample() {
  MutexLock lock(&sample_mutex);
  process.Sample();
  if (!sample) return;
  const Sampled now = sample();
  workers.Set(static_cast<double>(now.workers));
  busy_workers.Set(static_cast<double>(now.busy_workers));
  open_jobs.Set(static_cast<double>(now.open_jobs));
  flop.Increment(now.flop - flop.Value());
  queued_requests.Set(static_cast<double>(now.queue.requests));
  queued_items.Set(static_cast<double>(now.queue.items));
  queued_seconds.Set(Seconds(now.queue.cost));
  held_bytes.Set(static_cast<double>(now.queue.bytes));
  queued_requests_limit.Set(static_cast<double>(now.queue_limits.requests));
  queued_seconds_limit.Set(Seconds(now.queue_limits.cost));
  held_bytes_limit.Set(static_cast<double>(now.queue_limits.bytes));
  primitives.Set(static_cast<double>(now.primitives.size));
  primitives_capacity.Set(static_cast<double>(now.primitives.capacity));
  refused_connections.Increment(static_cast<double>(now.refused_connections) -
                                refused_connections.Value());
  primitive_misses.Increment(static_cast<double>(now.primitives.misses) - primitive_misses.Value());
}

Metrics::Metrics(const BuildFacts& build) : impl_(std::make_shared<Impl>()) {
  Make<Gauge>(impl_->registry, "attend_build_info", "Always 1; the labels tell the build")
      .Add({{"version", build.version},
            {"commit", build.commit},
            {"isa", build.isa},
            {"onednn", build.onednn}})
      .Set(1);
}

Metrics::~Metrics() { SampleWith(nullptr); }

void Metrics::OnExchange(const Exchange& told) {
  Exchange exchange = told;
  if (exchange.model.empty()) exchange.model = kUnknownModel;
  const auto [counter, histogram] = impl_->OutcomeOf(exchange);
  counter->Increment();
  histogram->Observe(Seconds(exchange.duration));
  if (!exchange.refusal) return;
  impl_->refused
      .Add({{"model", Text(exchange.model)}, {"reason", Text(RefusalName(*exchange.refusal))}})
      .Increment();
}

void Metrics::SampleWith(std::function<Sampled()> sample) {
  MutexLock lock(&impl_->sample_mutex);
  impl_->sample = std::move(sample);
}

void Metrics::OnModelReady(absl::string_view model, std::chrono::nanoseconds load_time) {
  impl_->model_load_seconds.Add({{"model", Text(model)}}).Set(Seconds(load_time));
  impl_->Of(model);
}

void Metrics::OnModelChange(const std::string& change) {
  impl_->model_changes.Add({{"change", change}}).Increment();
}

void Metrics::OnBatchStarted(const BatchFacts& facts) {
  OfModel& model = impl_->Of(facts.model);
  model.batch_requests.Observe(static_cast<double>(facts.requests));
  model.batch_items.Observe(static_cast<double>(facts.items));
  model.batch_seconds.Observe(Seconds(facts.predicted));
}

void Metrics::OnBatchFinished(const BatchCostFacts& facts) {
  OfModel& model = impl_->Of(facts.model);
  model.predicted_seconds.Increment(Seconds(facts.predicted));
  model.measured_seconds.Increment(Seconds(facts.measured));
}

void Metrics::OnRequestComputed(const RequestFacts& facts) {
  OfModel& model = impl_->Of(facts.model);
  model.items.Increment(static_cast<double>(facts.items));
  model.request_items.Observe(static_cast<double>(facts.items));
  model.queue_seconds.Observe(Seconds(facts.queue));
  model.compute_seconds.Observe(Seconds(facts.compute));
}

void Metrics::OnStalled(bool stalled) { impl_->stalled.Set(stalled ? 1 : 0); }

std::shared_ptr<prometheus::Collectable> Metrics::collectable() const { return impl_; }

}  // namespace attend
