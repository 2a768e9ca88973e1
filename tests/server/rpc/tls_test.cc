// Transport security of the server, with certificates for the name attend.test.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/batching/batcher.h"
#include "server/rpc/grpc_server.h"

namespace attend {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kFolder = ATTEND_SOURCE_DIR "/tests/client/tls/";

std::string Read(const std::string& name) {
  std::ifstream in(kFolder + name);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class TlsTest : public ::testing::Test {
 protected:
  absl::Status Start(const TlsFiles& files) {
    auto server = GrpcServer::Start({"localhost:0", files}, {&registry_, &batcher_}, &observer_);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  }
  // What a new connection with these credentials comes to.
  grpc::Status Ask(const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetSslTargetNameOverride("attend.test");
    const auto stub = grpc::health::v1::Health::NewStub(
        grpc::CreateCustomChannel(server_->address(), credentials, arguments));
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    const grpc::Status status = stub->Check(&context, {}, &response);
    peer_.clear();
    for (const grpc::string_ref& name :
         context.auth_context()->FindPropertyValues("x509_common_name")) {
      peer_.append(name.data(), name.size());
    }
    return status;
  }
  static std::shared_ptr<grpc::ChannelCredentials> Trusting(bool with_certificate) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = Read("ca.pem");
    if (with_certificate) {
      options.pem_private_key = Read("client.key");
      options.pem_cert_chain = Read("client.pem");
    }
    return grpc::SslCredentials(options);
  }

  ModelRegistry registry_;
  BatchObserver batch_observer_;
  ExchangeObserver observer_;
  Batcher batcher_{BatcherOptions{}, &batch_observer_};
  std::unique_ptr<GrpcServer> server_;
  std::string peer_;  // whom the last connection was to, by its certificate
};

TEST_F(TlsTest, WithACertificateTheServerSpeaksTlsAlone) {
  ASSERT_TRUE(Start({kFolder + "server.pem", kFolder + "server.key", ""}).ok());
  const grpc::Status status = Ask(Trusting(false));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Ask(grpc::InsecureChannelCredentials()).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, WithClientRootsACallerNeedsACertificate) {
  ASSERT_TRUE(Start({kFolder + "server.pem", kFolder + "server.key", kFolder + "ca.pem"}).ok());
  const grpc::Status status = Ask(Trusting(true));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Ask(Trusting(false)).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, AReplacedCertificateServesNewConnections) {
  const fs::path folder = fs::temp_directory_path() / ("attend-tls-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const auto install = [&](const std::string& name) {
    for (const char* end : {".key", ".pem"}) {
      fs::copy_file(kFolder + name + end, folder / "next", fs::copy_options::overwrite_existing);
      fs::rename(folder / "next", folder / (std::string("tls") + end));
    }
  };
  install("server");
  ASSERT_TRUE(Start({folder / "tls.pem", folder / "tls.key", ""}).ok());
  ASSERT_TRUE(Ask(Trusting(false)).ok());
  EXPECT_EQ(peer_, "attend-server");
  install("client");
  // The key and the certificate are replaced one after the other: a moment may see them apart.
  while (peer_ != "attend-client") Ask(Trusting(false));
  fs::remove_all(folder);
}

TEST_F(TlsTest, WhatIsMissingOrNoPemIsNamed) {
  EXPECT_THAT(Start({kFolder + "server.pem", "", ""}).message(), HasSubstr("go together"));
  EXPECT_THAT(Start({"", "", kFolder + "ca.pem"}).message(), HasSubstr("--tls-client-ca needs"));
  EXPECT_THAT(Start({"/nowhere.pem", kFolder + "server.key", ""}).message(),
              HasSubstr("--tls-certificate: can't read /nowhere.pem"));
  EXPECT_THAT(Start({kFolder + "server.key", kFolder + "server.key", ""}).message(),
              HasSubstr("holds no \"-----BEGIN CERTIFICATE"));
}

}  // namespace
}  // namespace attend
