#include "client/load/request_body.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/command/oip_calls.h"
#include "client/tensors.h"

namespace attend::client {
namespace {

std::string Bytes(const grpc::ByteBuffer& body) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(body.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ByteBuffer BodyOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

RequestBodies Bodies(Protocol protocol) { return RequestBodies(protocol, {}, {}); }

TEST(RequestBodies, ABodyIsAWholeRequest) {
  v1::AttendRequest shared;
  shared.set_model("layer");
  shared.set_version("3");
  shared.set_causal(true);
  const RequestBodies bodies(Protocol::kAttend, shared, {.longest = 40, .d_f = 5, .seed = 1});
  for (int64_t items : {1, 7, 40}) {
    v1::AttendRequest request;
    ASSERT_TRUE(request.ParseFromString(Bytes(bodies.Body(items, 2))));
    EXPECT_EQ(request.model(), "layer");
    EXPECT_EQ(request.version(), "3");
    EXPECT_TRUE(request.causal());
    EXPECT_EQ(request.priority(), 2u);
    EXPECT_EQ(ShapeText(request.items()), absl::StrCat("[", items, ", 5]"));
    const auto numbers = Floats(request.items());
    ASSERT_TRUE(numbers.ok()) << numbers.status();
    for (float number : *numbers) {
      EXPECT_GE(number, -1);
      EXPECT_LT(number, 1);
    }
  }
}

TEST(RequestBodies, BothProtocolsAskTheSame) {
  v1::AttendRequest shared;
  shared.set_model("layer");
  shared.set_version("3");
  shared.set_causal(true);
  const BodyNumbers numbers{.longest = 40, .d_f = 5, .seed = 1};
  const RequestBodies attend(Protocol::kAttend, shared, numbers);
  const RequestBodies oip(Protocol::kOip, shared, numbers);
  for (uint32_t priority : {0, 2}) {
    v1::AttendRequest request;
    ASSERT_TRUE(request.ParseFromString(Bytes(attend.Body(7, priority))));
    inference::ModelInferRequest infer;
    ASSERT_TRUE(infer.ParseFromString(Bytes(oip.Body(7, priority))));
    EXPECT_EQ(infer.DebugString(), ToInferRequest(request).DebugString());
  }
}

TEST(RequestBodies, TheSameSeedGivesTheSameBytes) {
  const auto bytes = [](uint64_t seed) {
    const RequestBodies bodies(Protocol::kAttend, {}, {.longest = 10, .d_f = 4, .seed = seed});
    return Bytes(bodies.Body(10, 0));
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

TEST(ReadAnswer, TimingIsFoundAmongTheTensors) {
  v1::AttendResponse response;
  response.set_request_id("id");
  SetFloats({100, 100}, std::vector<float>(10'000, 1.f), response.mutable_values());
  response.mutable_timing()->set_queue_us(12);
  response.mutable_timing()->set_compute_us(3456);
  SetFloats({1, 1, 1}, std::vector<float>{1.f}, response.mutable_weights());
  grpc::ByteBuffer body = BodyOf(response.SerializeAsString());
  LoadReply reply;
  ASSERT_TRUE(Bodies(Protocol::kAttend).ReadAnswer(&body, &reply));
  EXPECT_EQ(reply.timing->queue, std::chrono::microseconds(12));
  EXPECT_EQ(reply.timing->compute, std::chrono::microseconds(3456));
}

TEST(ReadAnswer, AnAnswerCutShortOrDamagedIsRefused) {
  v1::AttendResponse response;
  response.mutable_timing()->set_queue_us(12);
  SetFloats({2, 2}, std::vector<float>(4, 1.f), response.mutable_values());
  const std::string whole = response.SerializeAsString();
  LoadReply reply;
  for (size_t size : {whole.size() - 1, size_t{1}}) {
    grpc::ByteBuffer body = BodyOf(whole.substr(0, size));
    EXPECT_FALSE(Bodies(Protocol::kAttend).ReadAnswer(&body, &reply)) << size;
  }
  grpc::ByteBuffer cut = BodyOf(whole.substr(0, whole.size() - 1));
  EXPECT_FALSE(Bodies(Protocol::kOip).ReadAnswer(&cut, &reply));
  grpc::ByteBuffer damaged = BodyOf("\x3a\x05xx");
  EXPECT_FALSE(Bodies(Protocol::kAttend).ReadAnswer(&damaged, &reply));
}

TEST(ReadAnswer, TheOpenInferenceProtocolTellsNoTiming) {
  inference::ModelInferResponse response;
  response.set_model_name("layer");
  response.add_raw_output_contents(std::string(40'000, 'x'));
  grpc::ByteBuffer body = BodyOf(response.SerializeAsString());
  LoadReply reply;
  EXPECT_TRUE(Bodies(Protocol::kOip).ReadAnswer(&body, &reply));
  EXPECT_FALSE(reply.timing.has_value());
}

}  // namespace
}  // namespace attend::client
