#include "server/rpc/credentials.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <fstream>
#include <sstream>
#include <string>

namespace attend {
namespace {

constexpr unsigned kRefreshSeconds = 1;

absl::Status CheckPem(const std::string& path, absl::string_view flag, absl::string_view begin) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::InvalidArgumentError(absl::StrCat(flag, ": can't read ", path));
  if (absl::StrContains(text.str(), begin)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": ", path, " holds no \"", begin, "...\"; expected PEM"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError("--tls-certificate and --tls-key go together");
  }
  if (files.certificate.empty()) {
    if (files.client_ca.empty()) return grpc::InsecureServerCredentials();
    return absl::InvalidArgumentError("--tls-client-ca needs --tls-certificate and --tls-key");
  }
  absl::Status status = CheckPem(files.certificate, "--tls-certificate", "-----BEGIN CERTIFICATE");
  status.Update(CheckPem(files.key, "--tls-key", "-----BEGIN"));
  const bool mutual = !files.client_ca.empty();
  if (mutual) {
    status.Update(CheckPem(files.client_ca, "--tls-client-ca", "-----BEGIN CERTIFICATE"));
  }
  if (!status.ok()) return status;

  using grpc::experimental::FileWatcherCertificateProvider;
  auto provider = std::make_shared<FileWatcherCertificateProvider>(
      files.key, files.certificate, files.client_ca, kRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (mutual) options.watch_root_certs();
  options.set_cert_request_type(mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                       : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace attend
