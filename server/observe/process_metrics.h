// What the operating system says about this process, under the names every Prometheus client uses.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace attend {

class ProcessMetrics {
 public:
  explicit ProcessMetrics(prometheus::Registry& registry);
  // Reads /proc; a value that can't be read keeps what it was. One thread at a time.
  void Sample();

 private:
  prometheus::Gauge& resident_bytes_;
  prometheus::Gauge& open_fds_;
  prometheus::Gauge& max_fds_;
  prometheus::Gauge& threads_;
  prometheus::Gauge& start_seconds_;
  prometheus::Counter& cpu_seconds_;
};

}  // namespace attend
