// Transport security of the client library, with certificates for the name attend.test.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "client/attend_client.h"
#include "fake_server.h"

namespace attend::client {
namespace {

const std::string kFolder = ATTEND_SOURCE_DIR "/tests/client/tls/";

std::string Read(const std::string& name) {
  std::ifstream in(kFolder + name);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::shared_ptr<grpc::ServerCredentials> ServerSide(bool asks_for_certificates) {
  grpc::SslServerCredentialsOptions options(
      asks_for_certificates ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                            : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_root_certs = Read("ca.pem");
  options.pem_key_cert_pairs.push_back({Read("server.key"), Read("server.pem")});
  return grpc::SslServerCredentials(options);
}

absl::Status ListAt(const FakeServer& server, const std::optional<TlsOptions>& tls) {
  const auto client = AttendClient::Create(
      {.targets = {server.target()}, .retry = {.max_attempts = 1}, .tls = tls});
  if (!client.ok()) return client.status();
  return (*client)->ListModels().status();
}

TEST(Tls, AServerOfATrustedAuthorityIsTalkedTo) {
  FakeServer server(ServerSide(false));
  const absl::Status status =
      ListAt(server, TlsOptions{.ca_file = kFolder + "ca.pem", .server_name = "attend.test"});
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Tls, AnotherNameAnotherAuthorityAndPlainTextAreUnavailable) {
  FakeServer server(ServerSide(false));
  EXPECT_TRUE(absl::IsUnavailable(ListAt(server, TlsOptions{.ca_file = kFolder + "ca.pem"})));
  EXPECT_TRUE(absl::IsUnavailable(
      ListAt(server, TlsOptions{.ca_file = kFolder + "client.pem", .server_name = "attend.test"})));
  EXPECT_TRUE(absl::IsUnavailable(ListAt(server, std::nullopt)));
}

TEST(Tls, AServerThatAsksForACertificateGetsOurs) {
  FakeServer server(ServerSide(true));
  TlsOptions tls{.ca_file = kFolder + "ca.pem", .server_name = "attend.test"};
  EXPECT_TRUE(absl::IsUnavailable(ListAt(server, tls)));
  tls.certificate_file = kFolder + "client.pem";
  tls.key_file = kFolder + "client.key";
  const absl::Status status = ListAt(server, tls);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace attend::client
