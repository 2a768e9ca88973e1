#include "client/channel.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <netdb.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <string_view>

namespace attend::client {
namespace {

absl::StatusOr<std::string> ReadPem(const std::string& option, const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in || text.find("-----BEGIN") == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": '", path, "' can't be read as a PEM file"));
  }
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const std::optional<TlsOptions>& tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  if (tls->certificate_file.empty() != tls->key_file.empty()) {
    return absl::InvalidArgumentError(
        "mutual TLS needs a certificate file and a key file, only one is given");
  }
  grpc::SslCredentialsOptions ssl;
  const std::pair<std::string*, absl::StatusOr<std::string>> parts[] = {
      {&ssl.pem_root_certs, ReadPem("TLS CA", tls->ca_file)},
      {&ssl.pem_cert_chain, ReadPem("TLS certificate", tls->certificate_file)},
      {&ssl.pem_private_key, ReadPem("TLS key", tls->key_file)},
  };
  for (const auto& [to, text] : parts) {
    if (!text.ok()) return text.status();
    *to = *text;
  }
  return grpc::SslCredentials(ssl);
}

// gRPC takes a list of targets only as numbers of one family, so names are resolved here and IPv4
// is written as IPv6 (::ffff:a.b.c.d).
absl::Status AppendAddresses(const std::string& target, std::vector<std::string>* addresses) {
  const size_t colon = target.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == target.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target '", target, "', expected HOST:PORT where there are several"));
  }
  std::string host = target.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const std::string port = target.substr(colon + 1);

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return absl::UnavailableError(absl::StrCat("target '", target, "': ", gai_strerror(error)));
  }
  // The first is what the system prefers: a host with several addresses stays one target.
  char text[INET6_ADDRSTRLEN];
  if (found->ai_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(found->ai_addr)->sin_addr, text,
              sizeof(text));
    addresses->push_back(absl::StrCat("[::ffff:", text, "]:", port));
  } else {
    inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6*>(found->ai_addr)->sin6_addr, text,
              sizeof(text));
    addresses->push_back(absl::StrCat("[", text, "]:", port));
  }
  freeaddrinfo(found);
  return absl::OkStatus();
}

absl::StatusOr<std::string> TargetUri(const std::vector<std::string>& targets) {
  if (targets.empty()) return absl::InvalidArgumentError("no target, expected HOST:PORT");
  for (const std::string& target : targets) {
    if (target.empty()) return absl::InvalidArgumentError("an empty target, expected HOST:PORT");
  }
  if (targets.size() == 1) return targets.front();
  std::vector<std::string> addresses;
  for (const std::string& target : targets) {
    if (absl::Status status = AppendAddresses(target, &addresses); !status.ok()) return status;
  }
  return absl::StrCat("ipv6:", absl::StrJoin(addresses, ","));
}

// A plain HOST:PORT may be a balancer, whose health is that of whichever server it asked.
bool MayHaveSeveralServers(const std::vector<std::string>& targets) {
  return targets.size() > 1 || (targets.size() == 1 && targets.front().rfind("dns:", 0) == 0);
}

double Seconds(std::chrono::milliseconds time) { return time.count() / 1e3; }

}  // namespace

std::string ServiceConfig(const ChannelOptions& options) {
  const RetryOptions& retry = options.retry;
  std::string config = R"({"loadBalancingConfig": [{"round_robin": {}}])";
  if (options.leave_out_unhealthy && MayHaveSeveralServers(options.targets)) {
    absl::StrAppend(&config, R"(, "healthCheckConfig": {"serviceName": ""})");
  }
  if (retry.max_attempts > 1) {
    absl::StrAppendFormat(&config,
                          R"(, "methodConfig": [{"name": [{"service": "attend.v1.Attention"},)"
                          R"( {"service": "inference.GRPCInferenceService"}], "retryPolicy": )"
                          R"({"maxAttempts": %d, "initialBackoff": "%.3fs", "maxBackoff": "%.3fs",)"
                          R"( "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}])",
                          std::min(retry.max_attempts, 5), Seconds(retry.first_backoff),
                          Seconds(retry.max_backoff));
  }
  return config + "}";
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const ChannelOptions& options) {
  const absl::StatusOr<std::string> uri = TargetUri(options.targets);
  if (!uri.ok()) return uri.status();
  const absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials =
      Credentials(options.tls);
  if (!credentials.ok()) return credentials.status();

  const int max_bytes = static_cast<int>(
      std::clamp<int64_t>(options.max_message_bytes, 1, std::numeric_limits<int>::max()));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(max_bytes);
  arguments.SetMaxSendMessageSize(max_bytes);
  arguments.SetServiceConfigJSON(ServiceConfig(options));
  // A call larger than its retry buffer is not retried, silently: every call must fit.
  arguments.SetInt(GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE, max_bytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt("attend.connection_group", options.connection_group);
  if (options.tls && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return grpc::CreateCustomChannel(*uri, *credentials, arguments);
}

}  // namespace attend::client
