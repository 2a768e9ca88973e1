// TLS and mutual TLS for the gRPC address.
#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/rpc/grpc_server.h"

namespace attend {

// Plain text when there is no certificate. The files are watched by gRPC itself, so a renewed
// certificate serves new connections without a restart. INVALID_ARGUMENT naming the file that can't
// be read, or the flag that is missing.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files);

}  // namespace attend
