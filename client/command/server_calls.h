// The calls of the command, by either protocol.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "attend/v1/attend.pb.h"
#include "client/attend_client.h"
#include "client/protocol.h"

namespace attend::client {

// As AttendClient's functions of the same names, with the messages of attend.v1 whatever is spoken.
// The Open Inference Protocol knows less: answers have no timing, models their name, version, d_f,
// d_out and num_heads alone, and health is that of the whole server.
class ServerCalls {
 public:
  virtual ~ServerCalls() = default;
  virtual absl::StatusOr<v1::AttendResponse> Attend(const v1::AttendRequest& request,
                                                    const CallOptions& options) = 0;
  virtual absl::StatusOr<std::vector<v1::ModelInfo>> ListModels(const CallOptions& options) = 0;
  virtual absl::StatusOr<v1::ModelInfo> GetModel(const std::string& name,
                                                 const std::string& version,
                                                 const CallOptions& options) = 0;
  virtual absl::Status Health(const std::string& service, const CallOptions& options) = 0;
};

// Does not connect yet. Errors as of MakeChannel.
absl::StatusOr<std::unique_ptr<ServerCalls>> MakeServerCalls(Protocol protocol,
                                                             const ChannelOptions& options);

}  // namespace attend::client
