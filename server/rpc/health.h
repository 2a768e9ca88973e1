// grpc.health.v1.Health on the server's own completion queue. gRPC's ready-made one is built on its
// callback API, whose threads then take part in polling every connection: a small call paid for the
// switches between them and ours.
#pragma once

#include <grpcpp/server_builder.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace attend {

// Check says NOT_FOUND of an unknown service, Watch SERVICE_UNKNOWN. Thread-safe. Outlives its
// calls, that is the completion queue.
class Health {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  // Knows `services` and the empty name, all NOT_SERVING.
  explicit Health(const std::vector<std::string>& services);

  void Register(grpc::ServerBuilder* builder) { builder->RegisterService(&service_); }
  void AcceptAll(grpc::ServerCompletionQueue* queue);
  // Of every name; tells who watches.
  void SetServing(bool serving);

 private:
  class CheckCall;
  class WatchCall;

  Status StatusOf(const std::string& service);
  void AddWatch(const std::shared_ptr<WatchCall>& watch);

  grpc::health::v1::Health::AsyncService service_;
  Mutex mutex_;
  std::map<std::string, Status> statuses_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<WatchCall>> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attend
