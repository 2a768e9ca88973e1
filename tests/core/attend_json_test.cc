#include "core/attend_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// `keys` after the one that every attend.json needs.
absl::StatusOr<AttendJson> Parse(const std::string& keys) {
  return ParseAttendJson(R"({"kind": "attention")" + (keys.empty() ? "" : ", " + keys) + "}");
}

TEST(AttendJson, OnlyTheKindMustBeSaid) {
  const auto json = Parse("");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_FALSE(json->d_f || json->d_k || json->d_v || json->num_heads || json->num_key_heads);
  EXPECT_FALSE(json->scale || json->causal);
  EXPECT_EQ(json->normalizer, Normalizer::kSoftmax);
  EXPECT_EQ(json->max_sequence_length, 65536);
  EXPECT_FALSE(json->batching.max_batch_items || json->batching.max_batch_requests ||
               json->batching.max_queued_requests || json->batching.max_queue_delay_ms ||
               json->batching.weight);
}

TEST(AttendJson, EveryKeyIsRead) {
  const auto json = Parse(R"("d_f": 2, "d_k": 3, "d_v": 4, "num_heads": 6, "num_key_heads": 2,
      "scale": -0.5, "normalizer": "sparsemax", "causal": true, "tensor_prefix": "layer.0.",
      "max_sequence_length": 100, "feature_names": ["size", "weight"],
      "item_names": {"dog": [1, 2.5], "Ant": [0, -1e-3]},
      "max_batch_items": 5, "max_batch_requests": 7, "max_queued_requests": 8,
      "max_queue_delay_ms": 0.25, "weight": 2, "_comment": {"anything": [null]})");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->d_f, 2);
  EXPECT_EQ(json->d_k, 3);
  EXPECT_EQ(json->d_v, 4);
  EXPECT_EQ(json->num_heads, 6);
  EXPECT_EQ(json->num_key_heads, 2);
  EXPECT_EQ(json->scale, -0.5f);
  EXPECT_EQ(json->normalizer, Normalizer::kSparsemax);
  EXPECT_EQ(json->causal, true);
  EXPECT_EQ(json->tensor_prefix, "layer.0.");
  EXPECT_EQ(json->max_sequence_length, 100);
  EXPECT_THAT(json->feature_names, ElementsAre("size", "weight"));
  EXPECT_THAT(json->item_names,
              ElementsAre(Pair("dog", ElementsAre(1, 2.5f)), Pair("Ant", ElementsAre(0, -1e-3f))));
  EXPECT_EQ(json->batching.max_batch_items, 5);
  EXPECT_EQ(json->batching.max_batch_requests, 7);
  EXPECT_EQ(json->batching.max_queued_requests, 8);
  EXPECT_EQ(json->batching.max_queue_delay_ms, 0.25);
  EXPECT_EQ(json->batching.weight, 2);
}

TEST(AttendJson, EveryScaleAndNormalizerIsKnown) {
  EXPECT_EQ(Parse(R"("scale": "inverse_sqrt_d_k")")->scale, std::nullopt);
  EXPECT_EQ(Parse(R"("scale": "none")")->scale, 1.0f);
  EXPECT_EQ(Parse(R"("scale": 0)")->scale, 0.0f);
  const std::pair<const char*, Normalizer> normalizers[] = {
      {"softmax", Normalizer::kSoftmax},     {"softmax_one", Normalizer::kSoftmaxOne},
      {"sigmoid", Normalizer::kSigmoid},     {"relu", Normalizer::kRelu},
      {"sparsemax", Normalizer::kSparsemax}, {"none", Normalizer::kNone}};
  for (const auto& [name, normalizer] : normalizers) {
    const auto json = Parse(R"("normalizer": ")" + std::string(name) + "\"");
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_EQ(json->normalizer, normalizer);
  }
}

TEST(AttendJson, WhatIsWrongIsNamedWithWhatWasExpected) {
  const struct {
    const char *keys, *message;
  } cases[] = {
      {R"("d_f": 0)", "d_f: 0, expected a whole number from 1 to 2147483647"},
      {R"("d_k": -3)", "d_k: -3, expected a whole number"},
      {R"("d_v": 1.5)", "d_v: 1.5, expected a whole number"},
      {R"("num_heads": "4")", "num_heads: \"4\", expected a whole number"},
      {R"("num_heads": 3000000000)", "num_heads: 3000000000, expected a whole number"},
      {R"("num_key_heads": null)", "num_key_heads: null, expected a whole number"},
      {R"("max_sequence_length": true)", "max_sequence_length: true, expected a whole number"},
      {R"("scale": "sqrt")", "scale: \"sqrt\", expected \"inverse_sqrt_d_k\", \"none\" or"},
      {R"("scale": 1e39)", "scale: 1e+39, expected"},
      {R"("scale": false)", "scale: false, expected"},
      {R"("normalizer": "Softmax")", "normalizer: \"Softmax\", expected \"softmax\", "},
      {R"("causal": 1)", "causal: 1, expected true or false"},
      {R"("tensor_prefix": 3)", "tensor_prefix: 3, expected a string"},
      {R"("feature_names": "a")", "feature_names: \"a\", expected an array of names"},
      {R"("feature_names": ["a", 3])", "feature_names: 3, expected a name"},
      {R"("feature_names": ["a", "a"])", "feature_names: \"a\" comes twice"},
      {R"("item_names": ["cat"])", "item_names: [\"cat\"], expected an object"},
      {R"("item_names": {"cat": 1})",
       "item_names: 1, expected an array of the features of \"cat\""},
      {R"("item_names": {"cat": [1, "x"]})", "item_names: \"cat\" holds \"x\", expected numbers"},
      {R"("item_names": {"cat": [1e39]})", "item_names: \"cat\" holds 1e+39, expected numbers"},
      {R"("item_names": {"cat": [1], "CAT": [2]})", "differ by more than case"},
      {R"("item_names": {"": [1]})", "names that are not empty"},
      {R"("max_batch_items": 0)", "max_batch_items: 0, expected a whole number"},
      {R"("max_batch_requests": 0)", "max_batch_requests: 0, expected a whole number"},
      {R"("max_queued_requests": 0)", "max_queued_requests: 0, expected a whole number"},
      {R"("max_queue_delay_ms": -1)", "max_queue_delay_ms: -1, expected milliseconds from 0"},
      {R"("weight": 0)", "weight: 0, expected a share"},
      {R"("heads": 4)", "unknown key \"heads\"; known are kind, d_f, d_k, d_v, num_heads, "},
      {R"("d_f": 4, "d_f": 4)", "the key \"d_f\" comes twice"},
      {R"("item_names": {"cat": [1], "cat": [1]})", "the key \"cat\" comes twice"},
  };
  for (const auto& c : cases) {
    const auto json = Parse(c.keys);
    EXPECT_TRUE(absl::IsInvalidArgument(json.status())) << c.keys;
    EXPECT_THAT(std::string(json.status().message()), HasSubstr(c.message)) << c.keys;
  }
}

TEST(AttendJson, WhatIsNoSuchObjectIsRefused) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"", "is no JSON: parse error at line 1, column 1"},
      {"{\"kind\":\n\"attention\",}", "is no JSON: parse error at line 2, column 13"},
      {"{} {}", "is no JSON: parse error at line 1, column 4"},
      {std::string("{\"kind\": \"attention\"}\0x", 23), "is no JSON: byte 21 is NUL"},
      {"{\"kind\": \"\xFF\"}", "ill-formed UTF-8"},
      {"{\"kind\": 1e999}", "is no JSON: number overflow"},
      {"[]", "[], expected a JSON object"},
      {"{}", "kind: missing, expected \"attention\""},
      {"{\"kind\": \"encoder\"}", "kind: \"encoder\", expected \"attention\""},
      {"{\"_\": " + std::string(100, '[') + std::string(100, ']') + "}", "nested deeper than 64"},
  };
  for (const auto& c : cases) {
    const auto json = ParseAttendJson(c.text);
    EXPECT_TRUE(absl::IsInvalidArgument(json.status())) << c.text;
    EXPECT_THAT(std::string(json.status().message()), HasSubstr(c.message)) << c.text;
  }
}

TEST(AttendJson, MessagesStayShortWhateverTheFileHolds) {
  const std::string long_text(100'000, 'x');
  for (const std::string& text : {"{\"kind\": \"" + long_text, "{\"kind\": \"" + long_text + "\"}",
                                  "{\"kind\": \"attention\", \"d_f\": \"" + long_text + "\"}"}) {
    EXPECT_LT(ParseAttendJson(text).status().message().size(), 400u);
  }
}

}  // namespace
}  // namespace attend
