// Model folders, up to the numbers that a model is made of.
#include "core/parse_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/model_files.h"

namespace attend {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr char kKind[] = R"("kind": "attention")";

absl::StatusOr<ParsedModel> ParseFolder(const TempDirectory& folder, const std::string& keys,
                                        const std::vector<StoredTensor>& tensors) {
  folder.Write("attend.json", std::string("{") + kKind + (keys.empty() ? "" : ", ") + keys + "}");
  folder.Write("model.safetensors", Safetensors(tensors));
  return ParseModel(folder.path());
}

// What the folder is refused with, without its path.
std::string Refusal(const std::string& keys, const std::vector<StoredTensor>& tensors) {
  TempDirectory folder;
  const absl::Status status = ParseFolder(folder, keys, tensors).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const std::string message(status.message());
  EXPECT_EQ(message.substr(0, folder.path().size() + 1), folder.path() + "/");
  return message.substr(folder.path().size() + 1);
}

// A plain layer: d_f 3, query and key rows, value rows.
std::vector<StoredTensor> Plain(int64_t query, int64_t key, int64_t value) {
  return {{"query.weight", {query, 3}}, {"key.weight", {key, 3}}, {"value.weight", {value, 3}}};
}

std::vector<StoredTensor> With(std::vector<StoredTensor> tensors, StoredTensor one) {
  tensors.push_back(std::move(one));
  return tensors;
}

TEST(ParseModel, ShapesDecideWhatIsNotSaid) {
  TempDirectory folder;
  const auto model = ParseFolder(folder, "", Plain(4, 4, 5));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config.d_f, 3);
  EXPECT_EQ(model->config.d_k, 4);
  EXPECT_EQ(model->config.d_v, 5);
  EXPECT_EQ(model->config.num_heads, 1);
  EXPECT_EQ(model->config.num_key_heads, 1);
  EXPECT_EQ(model->config.scale, 0.5f);
  EXPECT_FALSE(model->config.causal);
  EXPECT_EQ(model->weights.d_out, 5);
  EXPECT_TRUE(model->weights.query_bias.empty());
  EXPECT_EQ(model->weights.value_weight.size(), 15);
}

TEST(ParseModel, HeadsComeFromTheirNumberOrTheirSize) {
  for (const char* keys : {R"("num_heads": 6)", R"("d_k": 2)", R"("num_heads": 6, "d_k": 2,
                             "num_key_heads": 3, "d_v": 4, "d_f": 3)"}) {
    TempDirectory folder;
    const auto model =
        ParseFolder(folder, keys, With(Plain(12, 6, 12), {"output.weight", {7, 24}}));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->config.num_heads, 6);
    EXPECT_EQ(model->config.num_key_heads, 3);
    EXPECT_EQ(model->config.d_k, 2);
    EXPECT_EQ(model->config.d_v, 4);
    EXPECT_EQ(model->weights.d_out, 7);
  }
}

TEST(ParseModel, AttendJsonIsTakenOver) {
  TempDirectory folder;
  const auto model =
      ParseFolder(folder,
                  R"("scale": 2, "normalizer": "relu", "causal": true, "max_sequence_length": 9,
         "feature_names": ["a", "b", "c"], "item_names": {"x": [1, 2, 3]}, "weight": 3)",
                  Plain(4, 4, 5));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config.scale, 2);
  EXPECT_EQ(model->config.normalizer, Normalizer::kRelu);
  EXPECT_TRUE(model->config.causal);
  EXPECT_EQ(model->config.max_sequence_length, 9);
  EXPECT_EQ(model->config.feature_names.size(), 3u);
  EXPECT_EQ(model->config.item_names.size(), 1u);
  EXPECT_EQ(model->batching.weight, 3);
}

TEST(ParseModel, EveryOracleCaseIsRead) {
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEND_ORACLE_DIR)) {
    const auto model = ParseModel(entry.path().string());
    EXPECT_TRUE(model.ok()) << model.status();
    ++cases;
  }
  EXPECT_GT(cases, 50);
}

TEST(ParseModel, WhatDisagreesIsNamedFromBothSides) {
  const std::vector<StoredTensor> bert = {
      {"self.query.weight", {12, 3}}, {"self.key.weight", {12, 3}}, {"self.value.weight", {12, 3}}};
  const struct {
    const char* keys;
    std::vector<StoredTensor> tensors;
    const char* message;
  } cases[] = {
      {R"("d_f": 4)", Plain(4, 4, 5),
       "attend.json: d_f: 4, but tensor \"query.weight\" [4, 3] makes it 3"},
      {R"("d_k": 5, "num_heads": 1)", Plain(4, 4, 5),
       "attend.json: d_k: 5, but tensor \"query.weight\" [4, 3] with num_heads 1 makes it 4"},
      {R"("d_k": 3)", Plain(4, 4, 5),
       "attend.json: d_k: 3, but the 4 query features of tensor \"query.weight\" [4, 3] can't be "
       "shared out among them"},
      {R"("num_heads": 3)", Plain(4, 4, 5),
       "attend.json: num_heads: 3, but the 4 query features of tensor \"query.weight\" [4, 3] "
       "can't be shared out among them"},
      {R"("num_key_heads": 2)", Plain(4, 4, 5),
       "attend.json: num_key_heads: 2, but tensor \"key.weight\" [4, 3] with d_k 4 makes it 1"},
      {R"("d_v": 4)", Plain(4, 4, 5),
       "attend.json: d_v: 4, but tensor \"value.weight\" [5, 3] with 1 key heads makes it 5"},
      {R"("num_heads": 4)", Plain(8, 6, 6),
       "attend.json: num_key_heads: the 3 key heads of tensor \"key.weight\" [6, 3] don't divide "
       "the 4 heads of tensor \"query.weight\" [8, 3]"},
      {R"("num_heads": 4)", Plain(8, 4, 5),
       "attend.json: num_key_heads: 2, but the 5 value features of tensor \"value.weight\" [5, 3] "
       "can't be shared out among them"},
      {"", Plain(4, 5, 5),
       "attend.json: d_k: 4, but the 5 key features of tensor \"key.weight\" [5, 3] can't be "
       "shared out among them"},
      {"",
       {{"query.weight", {4, 3}}, {"key.weight", {4, 2}}, {"value.weight", {4, 3}}},
       "tensors \"query.weight\" [4, 3] and \"key.weight\" [4, 2]: the columns are d_f of both, 3 "
       "and 2"},
      {"", With(Plain(4, 4, 5), {"value.bias", {4}}),
       "tensors \"value.weight\" [5, 3] and \"value.bias\" [4]: a bias has one element for each "
       "row"},
      {"", With(Plain(4, 4, 5), {"output.weight", {3, 4}}),
       "tensor \"output.weight\" [3, 4]: expected 5 columns, num_heads 1 times d_v 5"},
      {"", bert,
       "attend.json: num_heads: missing: the layout \"BERT\" with \"self.query.weight\" [12, 3] "
       "needs num_heads or d_k"},
      {R"("num_heads": 1)",
       {{"c_attn.weight", {3, 9}}},
       "attend.json: causal: missing: models in the layout \"GPT-2\" are causal; say true, or "
       "false on purpose"},
      {R"("feature_names": ["a"])", Plain(4, 4, 5),
       "attend.json: feature_names: 1 names for d_f 3"},
      {R"("item_names": {"x": [1]})", Plain(4, 4, 5),
       "attend.json: item_names: \"x\" has 1 features, expected d_f 3"},
      {R"("tensor_prefix": "x.")", Plain(4, 4, 5),
       "no known tensor layout at tensor_prefix \"x.\"; the names found in the file are "
       "\"key.weight\", \"query.weight\", \"value.weight\"; layers are at tensor_prefix \"\""},
  };
  for (const auto& c : cases) EXPECT_THAT(Refusal(c.keys, c.tensors), EndsWith(c.message));
}

TEST(ParseModel, BrokenFilesAreNamedWithTheirFolder) {
  TempDirectory folder;
  absl::Status status = ParseModel(folder.path()).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), folder.path() + "/attend.json: there is no such file");
  folder.Write("attend.json", R"({"kind": "attention")");
  EXPECT_THAT(std::string(ParseModel(folder.path()).status().message()),
              HasSubstr("/attend.json: is no JSON: parse error at line 1, column 21"));
  folder.Write("attend.json", R"({"kind": "attention"})");
  status = ParseModel(folder.path()).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), folder.path() +
                                  "/model.safetensors: there is no such file, and no "
                                  "model.safetensors.index.json");
  folder.Write("model.safetensors", "1234");
  EXPECT_THAT(std::string(ParseModel(folder.path()).status().message()),
              HasSubstr("/model.safetensors: holds 4 bytes"));
}

TEST(ParseModel, WeightsThatAreNotFiniteAreRefused) {
  EXPECT_EQ(Refusal("", With({{"query.weight", {2, 3}}, {"key.weight", {2, 3}}},
                             {"value.weight", {1, 3}, "F32", Bytes({0, std::nanf(""), 0})})),
            "model.safetensors: tensor \"value.weight\" F32 [1, 3]: element [0, 1] is nan, "
            "expected a number that is finite as float32");
}

// The elements of a parameter, as numbers that name themselves.
std::vector<float> Counted(int64_t from, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), static_cast<float>(from));
  return values;
}

std::string Transposed(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> turned(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) turned[j * rows + i] = values[i * columns + j];
  }
  return Bytes(turned);
}

TEST(ParseModel, EveryLayoutHoldsTheSameLayer) {
  // d_f 4, two heads of 2.
  const std::vector<float> q = Counted(0, 16), k = Counted(100, 16), v = Counted(200, 16),
                           o = Counted(300, 16), qkv_bias = Counted(400, 12), ob = Counted(500, 4);
  const std::string qb = Bytes(Counted(400, 4)), kb = Bytes(Counted(404, 4)),
                    vb = Bytes(Counted(408, 4));
  std::vector<float> qkv = q;
  qkv.insert(qkv.end(), k.begin(), k.end());
  qkv.insert(qkv.end(), v.begin(), v.end());
  const auto separate = [&](const char* query, const char* key, const char* value,
                            const char* output) {
    const auto weight = [](const char* name) { return std::string(name) + ".weight"; };
    const auto bias = [](const char* name) { return std::string(name) + ".bias"; };
    return std::vector<StoredTensor>{
        {weight(query), {4, 4}, "F32", Bytes(q)},  {bias(query), {4}, "F32", qb},
        {weight(key), {4, 4}, "F32", Bytes(k)},    {bias(key), {4}, "F32", kb},
        {weight(value), {4, 4}, "F32", Bytes(v)},  {bias(value), {4}, "F32", vb},
        {weight(output), {4, 4}, "F32", Bytes(o)}, {bias(output), {4}, "F32", Bytes(ob)}};
  };
  const auto fused = [&](const char* weight, const char* bias, const std::string& output) {
    return std::vector<StoredTensor>{{weight, {12, 4}, "F32", Bytes(qkv)},
                                     {bias, {12}, "F32", Bytes(qkv_bias)},
                                     {output + ".weight", {4, 4}, "F32", Bytes(o)},
                                     {output + ".bias", {4}, "F32", Bytes(ob)}};
  };
  const std::vector<std::vector<StoredTensor>> layouts = {
      separate("query", "key", "value", "output"),
      separate("q_proj", "k_proj", "v_proj", "o_proj"),
      separate("q_lin", "k_lin", "v_lin", "out_lin"),
      separate("self.query", "self.key", "self.value", "output.dense"),
      separate("attention.query", "attention.key", "attention.value", "output.dense"),
      fused("in_proj_weight", "in_proj_bias", "out_proj"),
      fused("qkv.weight", "qkv.bias", "proj"),
      fused("c_attn.weight", "c_attn.bias", "c_proj"),
      {{"c_attn.weight", {4, 12}, "F32", Transposed(qkv, 12, 4)},
       {"c_attn.bias", {12}, "F32", Bytes(qkv_bias)},
       {"c_proj.weight", {4, 4}, "F32", Transposed(o, 4, 4)},
       {"c_proj.bias", {4}, "F32", Bytes(ob)}}};
  for (const std::vector<StoredTensor>& layout : layouts) {
    TempDirectory folder;
    const auto model = ParseFolder(folder, R"("num_heads": 2, "causal": false)", layout);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto expect = [&](const FloatBuffer& read, const std::vector<float>& expected) {
      EXPECT_EQ(std::vector<float>(read.span().begin(), read.span().end()), expected)
          << layout[0].name;
    };
    expect(model->weights.query_weight, q);
    expect(model->weights.key_weight, k);
    expect(model->weights.value_weight, v);
    expect(model->weights.output_weight, o);
    expect(model->weights.query_bias, Counted(400, 4));
    expect(model->weights.key_bias, Counted(404, 4));
    expect(model->weights.value_bias, Counted(408, 4));
    expect(model->weights.output_bias, ob);
    EXPECT_EQ(model->config.d_k, 2);
    EXPECT_EQ(model->weights.d_out, 4);
  }
}

constexpr char kIndex[] = "model.safetensors.index.json";

// Two shards that together hold a plain layer.
void WriteShards(const TempDirectory& folder) {
  folder.Write("attend.json", R"({"kind": "attention"})");
  folder.Write("a.safetensors", Safetensors({{"query.weight", {2, 3}}, {"old", {1}}}));
  folder.Write("b.safetensors", Safetensors({{"key.weight", {2, 3}},
                                             {"value.weight", {1, 3}, "F32", Bytes({7, 8, 9})}}));
  folder.Write(kIndex, R"({"metadata": {"total_size": 60}, "weight_map": {
      "query.weight": "a.safetensors", "key.weight": "b.safetensors",
      "value.weight": "b.safetensors"}})");
}

TEST(ParseModel, ShardsAreReadByTheirIndex) {
  TempDirectory folder;
  WriteShards(folder);
  const auto model = ParseModel(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->weights.value_weight.data()[2], 9);
}

TEST(ParseModel, AnIndexThatIsWrongIsRefused) {
  const struct {
    const char *index, *message;
  } cases[] = {
      {"{", "is no JSON: parse error at line 1, column 2"},
      {R"({"weights": {}})", "expected an object with a \"weight_map\""},
      {R"({"weight_map": []})", "expected an object with a \"weight_map\""},
      {R"({"weight_map": {"x": 3}})", "weight_map: \"x\": 3, expected the name of a .safetensors"},
      {R"({"weight_map": {"x": "../a.safetensors"}})", "expected the name of a .safetensors file"},
      {R"({"weight_map": {"x": "a.bin"}})", "expected the name of a .safetensors file"},
      {R"({"weight_map": {"x": "c.safetensors"}})", "c.safetensors: there is no such file"},
      {R"({"weight_map": {"x": "a.safetensors"}})",
       "weight_map: \"x\" should be in a.safetensors, which has no such tensor"},
      {R"({"weight_map": {"x": "a.safetensors", "x": "a.safetensors"}})",
       "the key \"x\" comes twice"},
  };
  for (const auto& c : cases) {
    TempDirectory folder;
    WriteShards(folder);
    folder.Write(kIndex, c.index);
    const std::string message(ParseModel(folder.path()).status().message());
    EXPECT_THAT(message, HasSubstr("/" + std::string(kIndex) + ": "));
    EXPECT_THAT(message, HasSubstr(c.message));
  }
}

TEST(ParseModel, OneFileIsPreferredToShards) {
  TempDirectory folder;
  WriteShards(folder);
  folder.Write("model.safetensors", Safetensors(Plain(4, 4, 5)));
  const auto model = ParseModel(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config.d_v, 5);
}

}  // namespace
}  // namespace attend
