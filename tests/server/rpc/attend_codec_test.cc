#include "server/rpc/attend_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>

#include "attend/v1/attend.pb.h"
#include "server/rpc/body.h"
#include "tests/server/rpc/pieces.h"

namespace attend {
namespace {

using ::testing::HasSubstr;

// A request read from pieces that live with it.
struct ReadBack {
  ReadBack(const std::string& bytes, std::mt19937& random) : pieces(bytes, random) {
    status = ReadAttendRequest(pieces.range(), &arena, &view);
  }
  Pieces pieces;
  ByteArena arena;
  AttendRequestView view;
  absl::Status status;
};

std::string BytesOf(ByteRange range) {
  std::string bytes(range.size(), '\0');
  range.Read(bytes.data(), bytes.size());
  return bytes;
}

absl::Status StatusOf(const v1::AttendRequest& request) {
  std::mt19937 random(1);
  return ReadBack(request.SerializeAsString(), random).status;
}

std::string RandomBytes(size_t size, std::mt19937& random) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

void FillFloats(v1::Tensor* tensor, std::vector<int64_t> shape, std::mt19937& random) {
  const std::pair<const char*, int> types[] = {
      {"", 4}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}};
  int64_t elements = 1;
  for (const int64_t size : shape) {
    tensor->add_shape(size);
    elements *= size;
  }
  const auto [name, size] = types[random() % 5];
  if (size == 4 && random() % 2 == 0) {
    for (int64_t i = 0; i < elements; ++i) tensor->add_values(static_cast<float>(random()));
  } else {
    tensor->set_data(RandomBytes(elements * size, random));
  }
  tensor->set_dtype(name);
}

void FillMask(v1::Tensor* tensor, std::vector<int64_t> shape, std::mt19937& random) {
  std::string data;
  int64_t elements = 1;
  for (const int64_t size : shape) {
    tensor->add_shape(size);
    elements *= size;
  }
  for (int64_t i = 0; i < elements; ++i) data.push_back(random() % 2);
  tensor->set_dtype("BOOL");
  tensor->set_data(data);
}

v1::AttendRequest RandomRequest(std::mt19937& random) {
  v1::AttendRequest request;
  const int64_t n = 1 + random() % 20, d_f = 1 + random() % 9;
  if (random() % 8) request.set_model("model \xc3\xa4");
  if (random() % 2) request.set_version("12");
  if (random() % 2) request.set_request_id("id-" + std::to_string(random()));
  if (random() % 8) FillFloats(request.mutable_items(), {n, d_f}, random);
  if (random() % 2) FillMask(request.mutable_key_mask(), {n}, random);
  if (random() % 2) FillMask(request.mutable_attention_mask(), {n, n}, random);
  if (random() % 2) FillFloats(request.mutable_attention_bias(), {n, n}, random);
  request.set_causal(random() % 2);
  for (int i = random() % 4; i > 0; --i) request.add_want(static_cast<v1::Output>(random() % 3));
  request.set_priority(random() % 2 ? random() : 0);
  request.set_answer_dtype(random() % 2 ? "BF16" : "");
  return request;
}

void ExpectSameTensor(const v1::Tensor& expected, const EncodedTensor& tensor) {
  EXPECT_EQ(std::vector<int64_t>(expected.shape().begin(), expected.shape().end()), tensor.shape);
  EXPECT_EQ(expected.dtype().empty() ? "F32" : expected.dtype(), NameOf(tensor.type));
  std::string bytes = expected.data();
  if (expected.values_size() > 0) {
    bytes.assign(reinterpret_cast<const char*>(expected.values().data()),
                 expected.values_size() * sizeof(float));
  }
  EXPECT_EQ(bytes, BytesOf(tensor.bytes));
}

bool Wants(const v1::AttendRequest& request, v1::Output output) {
  return std::count(request.want().begin(), request.want().end(), output) > 0;
}

void ExpectSame(const v1::AttendRequest& expected, const AttendRequestView& view) {
  EXPECT_EQ(expected.model(), view.model);
  EXPECT_EQ(expected.version(), view.version);
  EXPECT_EQ(expected.request_id(), view.request_id);
  EXPECT_EQ(expected.causal(), view.sequence.causal);
  EXPECT_EQ(expected.priority(), view.priority);
  EXPECT_EQ(expected.answer_dtype().empty() ? "F32" : expected.answer_dtype(),
            NameOf(view.answer_type));
  EXPECT_EQ(expected.want().empty() || Wants(expected, v1::VALUES), view.sequence.want_values);
  EXPECT_EQ(Wants(expected, v1::SCORES), view.sequence.want_scores);
  EXPECT_EQ(Wants(expected, v1::WEIGHTS), view.sequence.want_weights);
  ASSERT_EQ(expected.has_items(), view.sequence.items.present);
  ASSERT_EQ(expected.has_key_mask(), view.sequence.key_mask.present);
  ASSERT_EQ(expected.has_attention_mask(), view.sequence.attention_mask.present);
  ASSERT_EQ(expected.has_attention_bias(), view.sequence.attention_bias.present);
  if (expected.has_items()) ExpectSameTensor(expected.items(), view.sequence.items);
  if (expected.has_key_mask()) ExpectSameTensor(expected.key_mask(), view.sequence.key_mask);
  if (expected.has_attention_mask()) {
    ExpectSameTensor(expected.attention_mask(), view.sequence.attention_mask);
  }
  if (expected.has_attention_bias()) {
    ExpectSameTensor(expected.attention_bias(), view.sequence.attention_bias);
  }
}

TEST(ReadAttendRequest, ReadsWhatProtobufWrites) {
  std::mt19937 random(7);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const v1::AttendRequest request = RandomRequest(random);
    const ReadBack read(request.SerializeAsString(), random);
    ASSERT_TRUE(read.status.ok()) << read.status << request.DebugString();
    ExpectSame(request, read.view);
  }
}

// Each read touches all bytes that the view points to, so that a sanitizer sees a wrong one.
TEST(ReadAttendRequest, NothingBrokenCrashesIt) {
  std::mt19937 random(11);
  int refused = 0, accepted = 0;
  for (int repeat = 0; repeat < 20000; ++repeat) {
    std::string bytes = RandomRequest(random).SerializeAsString();
    if (random() % 2) bytes.resize(random() % (bytes.size() + 1));
    for (int i = random() % 4; i > 0 && !bytes.empty(); --i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const ReadBack read(bytes, random);
    ++(read.status.ok() ? accepted : refused);
    EXPECT_TRUE(read.status.ok() || absl::IsInvalidArgument(read.status)) << read.status;
    const EncodedSequence& sequence = read.view.sequence;
    for (const EncodedTensor* tensor : {&sequence.items, &sequence.key_mask,
                                        &sequence.attention_mask, &sequence.attention_bias}) {
      BytesOf(tensor->bytes);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 1000);
}

TEST(ReadAttendRequest, WhatItAcceptsOfMutatedBytesProtobufReadsTheSame) {
  std::mt19937 random(13);
  int compared = 0;
  for (int repeat = 0; repeat < 20000; ++repeat) {
    std::string bytes = RandomRequest(random).SerializeAsString();
    if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
    const ReadBack read(bytes, random);
    if (!read.status.ok()) continue;
    v1::AttendRequest request;
    ASSERT_TRUE(request.ParseFromString(bytes));
    ExpectSame(request, read.view);
    ++compared;
  }
  EXPECT_GT(compared, 5000);
}

TEST(ReadAttendRequest, UnknownFieldsAreSkipped) {
  v1::AttendRequest request;
  request.set_model("m");
  std::string bytes = request.SerializeAsString();
  bytes += "\xa0\x06\x01";     // field 100, an integer
  bytes += "\xaa\x06\x03xyz";  // field 101, bytes
  bytes +=
      "\xb5\x06"
      "wxyz";  // field 102, 32 bits
  std::mt19937 random(1);
  const ReadBack read(bytes, random);
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.view.model, "m");
}

TEST(ReadAttendRequest, UnpackedAndPackedValuesMix) {
  const auto single = [](float value) {
    std::string bytes = "\x25";
    return bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  const float pair[] = {2, 3};
  std::string tensor = single(1) + "\x22\x08";
  tensor.append(reinterpret_cast<const char*>(pair), sizeof(pair));
  tensor += single(4) + std::string("\x12\x02\x02\x02", 4);  // shape [2, 2], packed
  std::string bytes = "\x22";                                // items
  bytes += static_cast<char>(tensor.size());
  std::mt19937 random(1);
  const ReadBack read(bytes + tensor, random);
  ASSERT_TRUE(read.status.ok()) << read.status;
  const float all[] = {1, 2, 3, 4};
  EXPECT_EQ(BytesOf(read.view.sequence.items.bytes),
            std::string(reinterpret_cast<const char*>(all), sizeof(all)));
}

TEST(ReadAttendRequest, AMaskMayComeAsNumbers) {
  v1::AttendRequest request;
  request.mutable_key_mask()->add_shape(3);
  for (const float value : {1.f, 0.f, 1.f}) request.mutable_key_mask()->add_values(value);
  std::mt19937 random(1);
  const ReadBack read(request.SerializeAsString(), random);
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.view.sequence.key_mask.type, ElementType::kBool);
  EXPECT_EQ(BytesOf(read.view.sequence.key_mask.bytes), std::string("\1\0\1", 3));
  request.mutable_key_mask()->set_values(1, 0.5);
  EXPECT_THAT(StatusOf(request).message(), HasSubstr("key_mask: values: element 1 is 0.5"));
}

TEST(ReadAttendRequest, WhatIsWrongIsNamed) {
  v1::AttendRequest request;
  v1::Tensor* items = request.mutable_items();
  items->add_shape(2);
  items->add_shape(3);
  items->set_data(std::string(20, '\0'));
  EXPECT_THAT(StatusOf(request).message(),
              HasSubstr("items: shape [2, 3] of F32 needs 24 bytes, but 20 came"));
  items->add_values(1);
  EXPECT_THAT(StatusOf(request).message(), HasSubstr("items: both data and values are set"));
  items->clear_data();
  items->set_dtype("F16");
  EXPECT_THAT(StatusOf(request).message(), HasSubstr("values are float32, but dtype is \"F16\""));
  items->clear_values();
  items->set_dtype("float");
  EXPECT_THAT(StatusOf(request).message(), HasSubstr("items.dtype: unknown element type"));
  items->clear_dtype();
  items->set_shape(0, -1);
  EXPECT_THAT(StatusOf(request).message(), HasSubstr("[-1, 3] has a negative size"));
  items->set_shape(0, int64_t{1} << 62);
  EXPECT_THAT(StatusOf(request).message(), HasSubstr("is beyond any memory"));
  for (int i = 0; i < 8; ++i) items->add_shape(1);
  EXPECT_THAT(StatusOf(request).message(), HasSubstr("items.shape: more than 8 numbers"));
  items->clear_shape();
  EXPECT_THAT(StatusOf(request).message(), HasSubstr("items: no shape"));

  v1::AttendRequest unknown_want;
  unknown_want.add_want(static_cast<v1::Output>(9));
  EXPECT_THAT(StatusOf(unknown_want).message(), HasSubstr("want: unknown output 9"));
  v1::AttendRequest bool_answer;
  bool_answer.set_answer_dtype("BOOL");
  EXPECT_THAT(StatusOf(bool_answer).message(), HasSubstr("answer_dtype: \"BOOL\""));
  v1::AttendRequest long_name;
  long_name.set_model(std::string(257, 'x'));
  EXPECT_THAT(StatusOf(long_name).message(), HasSubstr("model: 257 bytes, at most 256"));
}

TEST(ReadAttendRequest, ATensorGivenTwiceIsRefused) {
  v1::AttendRequest request;
  request.mutable_items()->add_shape(0);
  const std::string once = request.SerializeAsString();
  std::mt19937 random(1);
  EXPECT_THAT(ReadBack(once + once, random).status.message(), HasSubstr("items: given twice"));
}

TEST(ReadAttendRequest, TextThatIsNotUtf8IsRefused) {
  std::mt19937 random(1);
  EXPECT_THAT(ReadBack("\x1a\x01\xff", random).status.message(),
              HasSubstr("request_id: not UTF-8"));
}

// A model of which the codec asks its shapes alone.
class ShapesOnly : public Model {
 public:
  ShapesOnly() {
    info_.d_out = 300;
    info_.num_heads = 2;
  }
  const ModelInfo& info() const override { return info_; }
  absl::Status Check(const SequenceInput&) const override { return absl::OkStatus(); }
  double Cost(int64_t, bool) const override { return 0; }
  absl::StatusOr<std::shared_ptr<Job>> Forward(PackedBatch, SequenceDone) const override {
    return absl::UnimplementedError("shapes only");
  }

 private:
  ModelInfo info_;
};

FloatBuffer Counting(int64_t size) {
  FloatBuffer floats(size);
  for (int64_t i = 0; i < size; ++i) floats.data()[i] = static_cast<float>(i);
  return floats;
}

void ExpectCounting(const v1::Tensor& tensor, std::vector<int64_t> shape, ElementType type) {
  EXPECT_EQ(std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end()), shape);
  EXPECT_EQ(tensor.dtype(), NameOf(type));
  const FloatBuffer floats = Counting(shape[0] * shape[1] * (shape.size() > 2 ? shape[2] : 1));
  std::string data(floats.size() * SizeOf(type), '\0');
  EncodeFloats(type, floats.span(), reinterpret_cast<uint8_t*>(data.data()));
  EXPECT_EQ(tensor.data(), data);
}

TEST(WriteAttendResponse, ProtobufReadsWhatItWrites) {
  const ServedModel served{"m", 3, std::make_unique<ShapesOnly>(), {}};
  for (const ElementType type :
       {ElementType::kF32, ElementType::kF16, ElementType::kBF16, ElementType::kF64}) {
    for (const int64_t n : {1, 2, 40}) {  // below and above what is copied
      Answer answer;
      answer.output.values = Counting(n * 300);
      answer.output.weights = Counting(2 * n * n);
      answer.timing = {std::chrono::microseconds(5), std::chrono::microseconds(700), 3, 90};
      v1::AttendResponse response;
      ASSERT_TRUE(
          Parse(WriteAttendResponse({"id", served, n, type}, std::move(answer)), &response).ok());
      EXPECT_EQ(response.request_id(), "id");
      EXPECT_EQ(response.model(), "m");
      EXPECT_EQ(response.version(), "3");
      EXPECT_EQ(response.timing().queue_us(), 5u);
      EXPECT_EQ(response.timing().compute_us(), 700u);
      EXPECT_EQ(response.timing().batch_requests(), 3u);
      EXPECT_EQ(response.timing().batch_items(), 90u);
      ExpectCounting(response.values(), {n, 300}, type);
      ExpectCounting(response.weights(), {2, n, n}, type);
      EXPECT_FALSE(response.has_scores());
      EXPECT_FALSE(response.has_error());
    }
  }
}

}  // namespace
}  // namespace attend
