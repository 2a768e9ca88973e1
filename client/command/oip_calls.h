// The command's calls by the Open Inference Protocol v2, and its messages from and to attend.v1's.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "attend/v1/attend.pb.h"
#include "client/command/server_calls.h"
#include "kserve/grpc_service.pb.h"

namespace attend::client {

absl::StatusOr<std::unique_ptr<ServerCalls>> MakeOipCalls(const ChannelOptions& options);

// The tensors' bytes as they are, raw. Tensors have `data`, not `values`.
inference::ModelInferRequest ToInferRequest(const v1::AttendRequest& request);

// INTERNAL for an answer that breaks the protocol: other than one raw content an output, a name
// or datatype that was not asked for. Takes the contents out of `response`.
absl::StatusOr<v1::AttendResponse> FromInferResponse(inference::ModelInferResponse* response);

// The version is the highest. INTERNAL when a tensor that a model of Attend has is missing.
absl::StatusOr<v1::ModelInfo> FromMetadata(const inference::ModelMetadataResponse& metadata);

}  // namespace attend::client
