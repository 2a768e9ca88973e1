#include "core/checkpoint_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hugging_face_config.h"
#include "core/parse_model.h"
#include "tests/core/model_files.h"

namespace attend {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::vector<StoredTensor> Bert(int layers) {
  std::vector<StoredTensor> tensors = {
      {"embeddings.position_ids", {1}, "I64", std::string(8, '\0')}};
  for (int i = 0; i < layers; ++i) {
    const std::string prefix = "encoder.layer." + std::to_string(i) + ".attention.";
    for (const char* name : {"self.query", "self.key", "self.value", "output.dense"}) {
      tensors.push_back({prefix + name + ".weight", {6, 6}});
      tensors.push_back({prefix + name + ".bias", {6}});
    }
  }
  return tensors;
}

TEST(CheckpointReport, LayersAndAReadyAttendJsonAreTold) {
  TempDirectory folder;
  folder.Write("model.safetensors", Safetensors(Bert(2)));
  folder.Write("config.json", R"({"model_type": "bert", "num_attention_heads": 3,
                                  "position_embedding_type": "absolute"})");
  const auto report = DescribeCheckpoint(folder.path());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(*report, folder.path() + R"(/model.safetensors: 17 tensors, 1352 bytes: F32 16, I64 1
2 attention layers, by tensor_prefix:
  "encoder.layer.0.attention.": BERT, F32, query [6, 6] + bias, key [6, 6] + bias, value [6, 6] + bias, output [6, 6] + bias
  "encoder.layer.1.attention.": BERT, F32, query [6, 6] + bias, key [6, 6] + bias, value [6, 6] + bias, output [6, 6] + bias

attend.json for "encoder.layer.0.attention.":
{
  "kind": "attention",
  "tensor_prefix": "encoder.layer.0.attention.",
  "d_f": 6,
  "d_k": 2,
  "d_v": 2,
  "num_heads": 3,
  "num_key_heads": 3,
  "causal": false
}
)");
}

TEST(CheckpointReport, TheReadyAttendJsonLoads) {
  TempDirectory folder;
  folder.Write("model.safetensors", Safetensors(Bert(2)));
  folder.Write("config.json", R"({"num_attention_heads": 3})");
  std::string report = *DescribeCheckpoint(folder.path(), "encoder.layer.1.attention.");
  folder.Write("attend.json", report.substr(report.find("\n{")));
  const auto model = ParseModel(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config.num_heads, 3);
  report = *DescribeCheckpoint(folder.path());
  EXPECT_THAT(report,
              EndsWith("its attend.json is right: d_f 6, num_heads 3, d_k 2, d_v 2, d_out 6\n"));
  folder.Write("attend.json", R"({"kind": "attention", "d_f": 7})");
  EXPECT_THAT(*DescribeCheckpoint(folder.path()), HasSubstr("its attend.json is refused: "));
}

TEST(CheckpointReport, HeadsThatNoFileTellsAreLeftToFillIn) {
  TempDirectory folder;
  folder.Write("model.safetensors", Safetensors(Bert(1)));
  const std::string report = *DescribeCheckpoint(folder.path());
  EXPECT_THAT(report, HasSubstr("\"num_heads\": \"FILL IN: the file doesn't say\""));
  folder.Write("attend.json", report.substr(report.find("\n{")));
  EXPECT_THAT(std::string(ParseModel(folder.path()).status().message()),
              HasSubstr("num_heads: \"FILL IN"));
}

TEST(CheckpointReport, GroupedKeysAndTransposedWeightsAreShown) {
  TempDirectory grouped;
  grouped.Write("model.safetensors", Safetensors({{"q_proj.weight", {8, 4}},
                                                  {"k_proj.weight", {4, 4}},
                                                  {"v_proj.weight", {4, 4}},
                                                  {"o_proj.weight", {4, 8}}}));
  grouped.Write("config.json", R"({"num_attention_heads": 4, "num_key_value_heads": 2})");
  EXPECT_THAT(*DescribeCheckpoint(grouped.path()), HasSubstr("\"num_key_heads\": 2"));
  TempDirectory gpt2;
  gpt2.Write("model.safetensors", Safetensors({{"h.0.attn.c_attn.weight", {4, 12}}}));
  gpt2.Write("config.json", R"({"n_head": 2})");
  const std::string report = *DescribeCheckpoint(gpt2.path());
  EXPECT_THAT(report, HasSubstr("GPT-2, F32, query [4, 4]^T"));
  EXPECT_THAT(report, HasSubstr("\"causal\": true"));
}

TEST(CheckpointReport, LayersThatCanNotBeServedSayWhy) {
  TempDirectory folder;
  std::vector<StoredTensor> tensors = Bert(1);
  tensors.push_back({"encoder.layer.0.attention.self.distance_embedding.weight", {3, 2}});
  folder.Write("model.safetensors", Safetensors(tensors));
  const absl::Status status = DescribeCheckpoint(folder.path()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\"encoder.layer.0.attention.\": can't be served: tensor "
                        "\"encoder.layer.0.attention.self.distance_embedding.weight\": relative "
                        "position embedding is not supported"));
}

TEST(CheckpointReport, WhatHoldsNoLayerIsRefused) {
  TempDirectory folder;
  EXPECT_THAT(std::string(DescribeCheckpoint(folder.path()).status().message()),
              HasSubstr("there is no such file"));
  folder.Write("model.safetensors", Safetensors({{"a.weight", {2, 2}}}));
  EXPECT_THAT(std::string(DescribeCheckpoint(folder.path()).status().message()),
              HasSubstr("no attention layer in a known layout"));
  folder.Write("model.safetensors", Safetensors(Bert(1)));
  EXPECT_THAT(std::string(DescribeCheckpoint(folder.path(), "x.").status().message()),
              HasSubstr("no known tensor layout at tensor_prefix \"x.\""));
}

TEST(HuggingFaceConfig, PositionsThatAttendDoesNotApplyAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("rope_theta": 10000.0)", "rope_theta 10000.0: rotary position embedding"},
      {R"("rope_scaling": {"type": "linear"})", "rotary position embedding"},
      {R"("rope_parameters": {"rope_type": "default"})", "rotary position embedding"},
      {R"("rotary_dim": 64)", "rotary_dim 64: rotary position embedding"},
      {R"("rotary_pct": 0.25)", "rotary position embedding"},
      {R"("rotary_emb_base": 10000)", "rotary position embedding"},
      {R"("alibi": true)", "alibi true: linear position biases"},
      {R"("relative_attention": true)", "relative position embedding"},
      {R"("position_embedding_type": "relative_key")",
       "position_embedding_type \"relative_key\": positions other than absolute ones"},
  };
  for (const auto& [key, message] : cases) {
    TempDirectory folder;
    folder.Write("model.safetensors", Safetensors(Bert(1)));
    folder.Write("attend.json", R"({"kind": "attention", "num_heads": 3,
                                    "tensor_prefix": "encoder.layer.0.attention."})");
    ASSERT_TRUE(ParseModel(folder.path()).ok());
    folder.Write("config.json", "{" + std::string(key) + "}");
    EXPECT_THAT(std::string(ParseModel(folder.path()).status().message()),
                HasSubstr("/config.json: "));
    EXPECT_THAT(std::string(ParseModel(folder.path()).status().message()),
                EndsWith(std::string(message) + " is not supported"));
    EXPECT_THAT(std::string(DescribeCheckpoint(folder.path()).status().message()),
                EndsWith(std::string(message) + " is not supported"));
  }
}

TEST(HuggingFaceConfig, KeysThatSayNoAreNoReasonToRefuse) {
  TempDirectory folder;
  folder.Write("config.json", R"({"rope_scaling": null, "alibi": false, "model_type": "opt"})");
  const auto config = ReadHuggingFaceConfig(folder.path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->unsupported, "");
  EXPECT_EQ(config->model_type, "opt");
  EXPECT_FALSE(config->num_heads);
}

TEST(HuggingFaceConfig, WhatIsNoObjectIsRefused) {
  for (const char* text : {"[]", "{"}) {
    TempDirectory folder;
    folder.Write("config.json", text);
    EXPECT_THAT(std::string(ReadHuggingFaceConfig(folder.path()).status().message()),
                EndsWith("; remove it if it is not this model's"));
  }
}

}  // namespace
}  // namespace attend
