// inference.GRPCInferenceService, the Open Inference Protocol v2: what its calls do.
#pragma once

#include <memory>

#include "server/rpc/exchange.h"
#include "server/rpc/serving.h"

namespace attend {

// ModelInfer, and each message of ModelStreamInfer.
void HandleInfer(const Serving& serving, std::shared_ptr<Exchange> exchange);
// A ModelInferResponse, and the reason for there being none, as messages of ModelStreamInfer.
grpc::ByteBuffer WrapStreamAnswer(grpc::ByteBuffer answer);
grpc::ByteBuffer WrapStreamError(const ExchangeFacts& facts, const absl::Status& status);

void HandleServerLive(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleServerReady(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleModelReady(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleServerMetadata(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleModelMetadata(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleModelConfig(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleModelStatistics(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleRepositoryIndex(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleRepositoryModelLoad(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleRepositoryModelUnload(const Serving& serving, std::shared_ptr<Exchange> exchange);

}  // namespace attend
