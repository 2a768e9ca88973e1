// Every oracle case over gRPC: the bits that the core gives, alone and among all the others.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>

#include "core/load_model.h"
#include "tests/core/oracle_case.h"
#include "tests/core/run_job.h"
#include "tests/core/same_bits.h"
#include "tests/server/rpc/running_server.h"

namespace attend {
namespace {

void SetFloats(const float* data, std::vector<int64_t> shape, v1::Tensor* tensor) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    tensor->add_shape(size);
    count *= size;
  }
  tensor->set_data(data, count * sizeof(float));
}

void SetMask(const uint8_t* data, std::vector<int64_t> shape, v1::Tensor* tensor) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    tensor->add_shape(size);
    count *= size;
  }
  tensor->set_dtype("BOOL");
  tensor->set_data(data, count);
}

v1::AttendRequest RequestOf(const OracleCase& c) {
  const SequenceInput& input = c.input;
  const int64_t n = input.num_items();
  v1::AttendRequest request;
  request.set_model(c.name);
  SetFloats(input.items.data, {n, input.items.columns}, request.mutable_items());
  if (!input.key_mask.empty()) SetMask(input.key_mask.data(), {n}, request.mutable_key_mask());
  if (!input.attention_mask.empty()) {
    SetMask(input.attention_mask.data, {n, n}, request.mutable_attention_mask());
  }
  if (!input.attention_bias.empty()) {
    SetFloats(input.attention_bias.data, {n, n}, request.mutable_attention_bias());
  }
  request.set_causal(input.causal);
  request.add_want(v1::VALUES);
  if (input.want_scores) request.add_want(v1::SCORES);
  if (input.want_weights) request.add_want(v1::WEIGHTS);
  return request;
}

std::vector<float> FloatsOf(const v1::Tensor& tensor) {
  std::vector<float> floats(tensor.data().size() / sizeof(float));
  std::memcpy(floats.data(), tensor.data().data(), tensor.data().size());
  return floats;
}

class OracleOverGrpc : public ::testing::Test {
 protected:
  static RunningServer::Options Options() {
    RunningServer::Options options;
    options.max_message_bytes = int64_t{256} << 20;
    options.batcher.threads = 2;
    return options;
  }
  void SetUp() override {
    for (const std::string& name : OracleCaseNames()) {
      auto read = ReadOracleCase(name);
      ASSERT_TRUE(read.ok()) << name << ": " << read.status();
      auto loaded = LoadModel(std::string(ATTEND_ORACLE_DIR) + "/" + name);
      ASSERT_TRUE(loaded.ok()) << name << ": " << loaded.status();
      auto answers = RunBatch(*loaded->model, {read->input});
      ASSERT_TRUE(answers[0].ok()) << name << ": " << answers[0].status();
      expected_.emplace(name, *std::move(answers[0]));
      server_.registry().Put(
          std::make_shared<ServedModel>(ServedModel{name, 1, std::move(loaded->model), {}}));
      cases_.push_back(*std::move(read));
    }
    ASSERT_GT(cases_.size(), 50u);
  }
  void ExpectTheCoresBits(const OracleCase& c, PendingCall& call) {
    ASSERT_TRUE(call.status().ok()) << c.name << ": " << call.status().error_message();
    const SequenceOutput& expected = expected_.at(c.name);
    const v1::AttendResponse& response = call.response();
    EXPECT_TRUE(SameBits(FloatsOf(response.values()), expected.values.span())) << c.name;
    EXPECT_TRUE(SameBits(FloatsOf(response.scores()), expected.scores.span())) << c.name;
    EXPECT_TRUE(SameBits(FloatsOf(response.weights()), expected.weights.span())) << c.name;
  }

  std::vector<OracleCase> cases_;
  std::map<std::string, SequenceOutput> expected_;
  RunningServer server_{Options()};
};

TEST_F(OracleOverGrpc, EveryCaseAloneAndAllAtOnceHaveTheCoresBits) {
  for (const OracleCase& c : cases_) {
    PendingCall call(server_, RequestOf(c));
    ExpectTheCoresBits(c, call);
  }
  std::deque<PendingCall> calls;
  for (const OracleCase& c : cases_) calls.emplace_back(server_, RequestOf(c));
  for (size_t i = 0; i < cases_.size(); ++i) ExpectTheCoresBits(cases_[i], calls[i]);
}

}  // namespace
}  // namespace attend
