// How a client reaches its servers: addresses, balancing, retries, limits, transport security.
#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/channel.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attend::client {

// PEM files, read once when the channel is made.
struct TlsOptions {
  std::string ca_file = {};           // who may have signed the server; "" is the system's list
  std::string certificate_file = {};  // mutual TLS: our own certificate and key, both or neither
  std::string key_file = {};
  std::string server_name = {};  // the name in the server's certificate where it isn't the target's
};

// Calls that a server did not take (UNAVAILABLE) are sent again, each wait longer than the last.
struct RetryOptions {
  int max_attempts = 4;  // 1 is no retry; gRPC itself stops at 5
  std::chrono::milliseconds first_backoff{50};
  std::chrono::milliseconds max_backoff{2000};
};

struct ChannelOptions {
  // HOST:PORT each. One name with several addresses ("dns:///attend:8001", a headless service)
  // is balanced and followed when it changes; several targets are balanced too, but resolved once.
  std::vector<std::string> targets = {"localhost:8001"};
  int64_t max_message_bytes = int64_t{256} << 20;  // of a request and of an answer
  RetryOptions retry = {};
  // Where there are several servers (several targets, or "dns:///NAME:PORT"), send no call to one
  // that is connected but says that it does not serve (yet, or any more).
  bool leave_out_unhealthy = true;
  std::optional<TlsOptions> tls = {};  // absent: plain text
  // Channels with equal options share connections, except where this differs.
  int connection_group = 0;
};

// A channel that connects when it is first used. INVALID_ARGUMENT naming the target, option or file
// that is wrong; UNAVAILABLE when one of several targets has no address.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options);

// The gRPC service config of such a channel, as JSON: round_robin, health, retry policy.
std::string ServiceConfig(const ChannelOptions& options);

}  // namespace attend::client
