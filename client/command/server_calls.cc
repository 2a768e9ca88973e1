#include "client/command/server_calls.h"

#include <utility>

#include "client/command/oip_calls.h"

namespace attend::client {
namespace {

class AttendCalls : public ServerCalls {
 public:
  explicit AttendCalls(std::unique_ptr<AttendClient> client) : client_(std::move(client)) {}

  absl::StatusOr<v1::AttendResponse> Attend(const v1::AttendRequest& request,
                                            const CallOptions& options) override {
    return client_->Attend(request, options);
  }
  absl::StatusOr<std::vector<v1::ModelInfo>> ListModels(const CallOptions& options) override {
    return client_->ListModels(options);
  }
  absl::StatusOr<v1::ModelInfo> GetModel(const std::string& name, const std::string& version,
                                         const CallOptions& options) override {
    return client_->GetModel(name, version, options);
  }
  absl::Status Health(const std::string& service, const CallOptions& options) override {
    return client_->Health(service, options);
  }

 private:
  const std::unique_ptr<AttendClient> client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ServerCalls>> MakeServerCalls(Protocol protocol,
                                                             const ChannelOptions& options) {
  if (protocol == Protocol::kOip) return MakeOipCalls(options);
  auto client = AttendClient::Create(options);
  if (!client.ok()) return client.status();
  return std::make_unique<AttendCalls>(*std::move(client));
}

}  // namespace attend::client
