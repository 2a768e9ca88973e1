// The C++ client of an Attend server: a thin, typed layer over attend.v1.
//
//   auto client = attend::client::AttendClient::Create({.targets = {"localhost:8001"}});
//   if (!client.ok()) return client.status();
//
//   std::vector<float> items(N * d_f);                       // one row for each item
//   attend::v1::AttendRequest request;
//   request.set_model("demo");
//   attend::client::SetFloats({N, d_f}, items, request.mutable_items());
//   request.add_want(attend::v1::VALUES);
//   request.add_want(attend::v1::WEIGHTS);
//
//   auto answer = (*client)->Attend(request, {.deadline = std::chrono::milliseconds(200)});
//   if (!answer.ok()) return answer.status();                // code, message; RetryAfter, Reason
//   std::span<const float> values = *attend::client::Floats(answer->values());    // [N, d_out]
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attend/v1/attend.pb.h"
#include "client/channel.h"
#include "client/errors.h"
#include "client/tensors.h"

namespace attend::client {

struct CallOptions {
  // From now to the answer; the server does not compute what would come later. DEADLINE_EXCEEDED.
  std::chrono::milliseconds deadline{30'000};
  // Wait for a server until the deadline, instead of failing with UNAVAILABLE when none is there.
  bool wait_for_ready = false;
};

// Thread-safe. Every status is the server's own, or UNAVAILABLE, DEADLINE_EXCEEDED or CANCELLED
// from the transport.
class AttendClient {
 public:
  // Does not connect yet. Errors as of MakeChannel.
  static absl::StatusOr<std::unique_ptr<AttendClient>> Create(const ChannelOptions& options = {});
  // Waits for the callbacks of calls that are still open.
  ~AttendClient();

  // One sequence, one answer.
  absl::StatusOr<v1::AttendResponse> Attend(const v1::AttendRequest& request,
                                            const CallOptions& options = {});
  // The same without waiting. `done` is called exactly once, on a thread of gRPC's: it must not
  // block and must not destroy the client. `request` may be destroyed once this returns.
  using AttendDone = std::function<void(absl::StatusOr<v1::AttendResponse>)>;
  void AttendAsync(const v1::AttendRequest& request, const CallOptions& options, AttendDone done);

  // Many sequences on one call. `done` is called once for each request that is answered or refused,
  // in whatever order the answers come, with its index in `requests`; on the calling thread.
  // Returns when all are. A stream that breaks (UNAVAILABLE) is opened again for those not yet
  // answered, as often as RetryOptions allow without an answer between; any other end of the call
  // is returned, and `done` was then not called for what is left. INVALID_ARGUMENT for a request_id
  // that occurs twice; empty ones are numbered.
  using StreamDone = std::function<void(size_t index, absl::StatusOr<v1::AttendResponse>)>;
  absl::Status AttendMany(std::span<const v1::AttendRequest> requests, const CallOptions& options,
                          const StreamDone& done);

  // Sorted by name, then version.
  absl::StatusOr<std::vector<v1::ModelInfo>> ListModels(const CallOptions& options = {});
  // `version` "" is the highest. NOT_FOUND.
  absl::StatusOr<v1::ModelInfo> GetModel(const std::string& name, const std::string& version = "",
                                         const CallOptions& options = {});
  // Whether `service` ("" is the whole server) takes calls. UNAVAILABLE when it says it does not;
  // NOT_FOUND when it has no such service.
  absl::Status Health(const std::string& service = "", const CallOptions& options = {});

 private:
  struct Impl;
  explicit AttendClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attend::client
