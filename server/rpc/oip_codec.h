// The Open Inference Protocol's ModelInfer: its message to sequences, answers to its message.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <google/protobuf/arena.h>
#include <grpcpp/support/byte_buffer.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kserve/grpc_service.pb.h"
#include "server/batching/pending_request.h"
#include "server/rpc/element_type.h"
#include "server/rpc/encoded_sequence.h"
#include "server/rpc/wire_reader.h"

namespace attend {

// Memory for one small message with its parts, most often without an allocation.
class SmallArena {
 public:
  template <typename Message>
  Message& Make() {
    return *google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }

 private:
  alignas(8) char block_[2048];
  google::protobuf::Arena arena_{block_, sizeof(block_)};
};

// A ModelInferRequest with its raw contents left where they are.
struct InferRequest {
  SmallArena memory;
  inference::ModelInferRequest& header = memory.Make<inference::ModelInferRequest>();  // the rest
  std::vector<ByteRange> raw;
};

// INVALID_ARGUMENT. The ranges point into `bytes`.
absl::Status ReadInferRequest(ByteRange bytes, InferRequest* request);

enum class OutputKind { kValues, kScores, kWeights };

struct InferOutput {
  OutputKind kind = OutputKind::kValues;
  ElementType type = ElementType::kF32;  // or kF16, by the output's parameter "datatype"
};

// What a request asks: one sequence, or a padded batch of them that is taken apart here.
struct InferQuestion {
  bool batched = false;                    // items [B, N, d_f]; otherwise [N, d_f] and B = 1
  int64_t padded_length = 0;               // N
  std::vector<EncodedSequence> sequences;  // [B]
  std::vector<InferOutput> outputs;        // in the order they were asked for
  uint32_t priority = 0;
  std::chrono::microseconds timeout{0};  // 0: none
};

// INVALID_ARGUMENT naming the tensor or parameter, or the rule of the protocol that is broken.
// Views into the request and `*arena`, which must outlive the question.
absl::StatusOr<InferQuestion> ReadQuestion(const InferRequest& request, ByteArena* arena);

struct InferAnswerHeader {
  const std::string& id;
  const ServedModel& model;
  const InferQuestion& question;
};

// A ModelInferResponse with raw contents; result rows of padding are 0. `answers` [B].
grpc::ByteBuffer WriteInferResponse(const InferAnswerHeader& header, std::vector<Answer> answers);

// "FP32" and so on, the protocol's names.
absl::string_view OipNameOf(ElementType type);

}  // namespace attend
