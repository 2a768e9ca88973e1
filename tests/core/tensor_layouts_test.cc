#include "core/tensor_layouts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorMap Tensors(const std::vector<std::pair<std::string, std::vector<uint64_t>>>& shapes) {
  TensorMap tensors;
  for (const auto& [name, shape] : shapes) tensors[name] = TensorInfo{"F32", shape, 0, 0};
  return tensors;
}

std::string Refusal(const TensorMap& tensors, const std::string& prefix = "") {
  return std::string(RecognizeLayer(tensors, prefix).status().message());
}

// A layer of d_f 4 in the names of one layout, at `prefix`.
TensorMap LayerOf(const std::string& prefix, const std::vector<std::string>& matrices) {
  TensorMap tensors;
  for (const std::string& name : matrices) {
    tensors[prefix + name + ".weight"] = TensorInfo{"F32", {4, 4}, 0, 0};
    tensors[prefix + name + ".bias"] = TensorInfo{"F32", {4}, 0, 0};
  }
  return tensors;
}

TEST(TensorLayouts, SeparateLayoutsAreRecognised) {
  const struct {
    const char *layout, *prefix;
    std::vector<std::string> matrices;  // query, key, value, output
  } cases[] = {
      {"plain", "", {"query", "key", "value", "output"}},
      {"separate projections", "layers.0.self_attn.", {"q_proj", "k_proj", "v_proj", "o_proj"}},
      {"separate projections", "m.", {"q_proj", "k_proj", "v_proj", "out_proj"}},
      {"BERT",
       "roberta.encoder.layer.7.attention.",
       {"self.query", "self.key", "self.value", "output.dense"}},
      {"ViT",
       "vit.encoder.layer.0.attention.",
       {"attention.query", "attention.key", "attention.value", "output.dense"}},
      {"DistilBERT",
       "distilbert.transformer.layer.5.attention.",
       {"q_lin", "k_lin", "v_lin", "out_lin"}},
  };
  for (const auto& c : cases) {
    const auto layer = RecognizeLayer(LayerOf(c.prefix, c.matrices), c.prefix);
    ASSERT_TRUE(layer.ok()) << layer.status();
    EXPECT_EQ(layer->layout, c.layout);
    EXPECT_EQ(layer->multi_head, layer->layout != "plain");
    EXPECT_EQ(layer->query_weight.tensor, c.prefix + c.matrices[0] + ".weight");
    EXPECT_EQ(layer->key_bias.tensor, c.prefix + c.matrices[1] + ".bias");
    EXPECT_EQ(layer->value_weight.tensor, c.prefix + c.matrices[2] + ".weight");
    EXPECT_EQ(layer->output_bias.tensor, c.prefix + c.matrices[3] + ".bias");
    EXPECT_EQ(layer->value_weight.rows, 4);
    EXPECT_EQ(layer->value_weight.columns, 4);
  }
}

TEST(TensorLayouts, FusedLayoutsAreCutInThirds) {
  const struct {
    const char *layout, *weight, *bias, *output;
    std::vector<uint64_t> shape;
    bool transposed;
  } cases[] = {
      {"torch.nn.MultiheadAttention", "in_proj_weight", "in_proj_bias", "out_proj", {12, 4}, false},
      {"fused qkv", "qkv.weight", "qkv.bias", "proj", {12, 4}, false},
      {"GPT-2", "c_attn.weight", "c_attn.bias", "c_proj", {4, 12}, true},
      {"GPT-2 names with torch.nn.Linear",
       "c_attn.weight",
       "c_attn.bias",
       "c_proj",
       {12, 4},
       false},
  };
  for (const auto& c : cases) {
    for (const bool has_bias : {true, false}) {
      TensorMap tensors = LayerOf("h.0.", {c.output});
      tensors["h.0." + std::string(c.weight)] = TensorInfo{"F32", c.shape, 0, 0};
      if (has_bias) tensors["h.0." + std::string(c.bias)] = TensorInfo{"F32", {12}, 0, 0};
      const auto layer = RecognizeLayer(tensors, "h.0.");
      ASSERT_TRUE(layer.ok()) << layer.status();
      EXPECT_EQ(layer->layout, c.layout);
      EXPECT_TRUE(layer->multi_head);
      EXPECT_EQ(layer->asks_causal, layer->layout.substr(0, 3) == "GPT");
      EXPECT_EQ(layer->query_weight.first_row, 0);
      EXPECT_EQ(layer->key_weight.first_row, 4);
      EXPECT_EQ(layer->value_weight.first_row, 8);
      EXPECT_EQ(layer->value_weight.rows, 4);
      EXPECT_EQ(layer->value_weight.columns, 4);
      EXPECT_EQ(layer->value_weight.transposed, c.transposed);
      EXPECT_EQ(layer->output_weight.transposed, c.transposed);
      EXPECT_EQ(layer->value_bias.first_row, has_bias ? 8 : 0);
      EXPECT_EQ(layer->value_bias.absent(), !has_bias);
    }
  }
}

TEST(TensorLayouts, BuffersAndNormsBesideALayerArePassedOver) {
  TensorMap bert =
      LayerOf("", {"self.query", "self.key", "self.value", "output.dense", "output.LayerNorm"});
  EXPECT_EQ(Refusal(bert), "");
  TensorMap gpt2 = Tensors({{"c_attn.weight", {4, 12}},
                            {"c_proj.weight", {4, 4}},
                            {"bias", {1, 1, 8, 8}},
                            {"masked_bias", {}}});
  EXPECT_EQ(Refusal(gpt2), "");
}

TEST(TensorLayouts, AnUnknownLayoutListsTheNamesFound) {
  EXPECT_EQ(Refusal(Tensors({{"a.weight", {4, 4}}, {"b.weight", {4, 4}}})),
            "no known tensor layout at tensor_prefix \"\"; the names found there are \"a.weight\", "
            "\"b.weight\"");
  EXPECT_EQ(Refusal({}),
            "no known tensor layout at tensor_prefix \"\"; the names found in the file are none");
  EXPECT_EQ(Refusal(Tensors({{"a.weight", {4, 4}}}), "x."),
            "no known tensor layout at tensor_prefix \"x.\"; the names found in the file are "
            "\"a.weight\"");
}

TEST(TensorLayouts, AWrongPrefixIsToldTheRightOnes) {
  TensorMap tensors;
  for (const char* layer : {"layer.10.", "layer.2."}) {
    tensors.merge(LayerOf(layer, {"q_proj", "k_proj", "v_proj", "out_proj"}));
  }
  EXPECT_THAT(Refusal(tensors, "layer.2"),
              HasSubstr("; layers are at tensor_prefix \"layer.2.\", \"layer.10.\""));
}

TEST(TensorLayouts, TwoLayoutsAtOncePlaceAreRefused) {
  TensorMap tensors = LayerOf("", {"query", "key", "value", "q_proj", "k_proj", "v_proj"});
  EXPECT_THAT(Refusal(tensors), HasSubstr("more than one tensor layout at tensor_prefix \"\": "
                                          "\"plain\", \"separate projections\""));
  tensors = LayerOf("", {"q_proj", "k_proj", "v_proj", "o_proj", "out_proj"});
  EXPECT_EQ(Refusal(tensors),
            "tensor \"o_proj.weight\": a second output projection beside \"out_proj.weight\"");
}

TEST(TensorLayouts, WhatIsMissingIsNamed) {
  TensorMap tensors = LayerOf("", {"query", "key", "value", "output"});
  tensors.erase("key.weight");
  EXPECT_EQ(Refusal(tensors), "tensor \"key.weight\": missing");
  tensors.erase("key.bias");
  EXPECT_EQ(Refusal(tensors), "tensor \"key.weight\": missing from a layer in the layout plain");
  tensors = LayerOf("", {"query", "key", "value", "output"});
  tensors.erase("output.weight");
  EXPECT_EQ(Refusal(tensors), "tensor \"output.weight\": missing");
}

TEST(TensorLayouts, ShapesThatAreNoneAreRefused) {
  const std::pair<std::string, std::vector<uint64_t>> wrong[] = {
      {"key.weight", {4}},       {"key.weight", {4, 0}},
      {"key.weight", {4, 4, 1}}, {"key.weight", {4, uint64_t{1} << 40}},
      {"key.bias", {4, 1}},      {"key.bias", {}},
  };
  for (const auto& [name, shape] : wrong) {
    TensorMap tensors = LayerOf("", {"query", "key", "value"});
    tensors[name].shape = shape;
    EXPECT_THAT(Refusal(tensors), testing::StartsWith("tensor \"" + name + "\": F32 ["));
    EXPECT_THAT(Refusal(tensors), testing::EndsWith(" that is not empty"));
  }
}

TEST(TensorLayouts, FusedWeightsThatCanNotBeCutAreRefused) {
  EXPECT_EQ(Refusal(Tensors({{"in_proj_weight", {13, 4}}})),
            "tensor \"in_proj_weight\": has 13 outputs, expected queries, keys and values of the "
            "same size, a multiple of 3");
  EXPECT_EQ(Refusal(Tensors({{"in_proj_weight", {12, 4}}, {"in_proj_bias", {4}}})),
            "tensor \"in_proj_bias\": [4], but in_proj_weight has 12 outputs");
  EXPECT_THAT(Refusal(Tensors({{"c_attn.weight", {12, 12}}})),
              HasSubstr("[12, 12] doesn't tell whether it is stored as [in, out]"));
  EXPECT_THAT(Refusal(Tensors({{"c_attn.weight", {12, 12}}, {"c_attn.bias", {12}}})),
              HasSubstr("[12, 12] doesn't tell"));
}

TEST(TensorLayouts, WhatWouldChangeTheMeaningIsRefusedByName) {
  const std::pair<const char*, const char*> refused[] = {
      {"self.rotary_embeddings.inv_freq", "rotary position embedding"},
      {"rotary_emb.inv_freq", "rotary position embedding"},
      {"q_proj_weight", "torch.nn.MultiheadAttention with kdim or vdim"},
      {"k_proj_weight", "torch.nn.MultiheadAttention with kdim or vdim"},
      {"v_proj_weight", "torch.nn.MultiheadAttention with kdim or vdim"},
      {"bias_k", "torch.nn.MultiheadAttention with add_bias_kv"},
      {"bias_v", "torch.nn.MultiheadAttention with add_bias_kv"},
      {"q_norm.weight", "normalised queries"},
      {"k_norm.weight", "normalised keys"},
      {"self.distance_embedding.weight", "relative position embedding"},
      {"relative_attention_bias.weight", "a learned relative position bias"},
      {"relative_position_bias_table", "a learned relative position bias"},
      {"rel_pos_h", "a learned relative position bias"},
      {"logit_scale", "cosine attention with a learned scale"},
      {"sinks", "learned attention sinks"},
      {"q_proj.lora_A.weight", "adapters that are not merged"},
      {"query_key_value.weight", "queries, keys and values interleaved by head"},
  };
  for (const auto& [name, meaning] : refused) {
    TensorMap tensors = LayerOf("a.", {"q_proj", "k_proj", "v_proj", "out_proj"});
    tensors[std::string("a.") + name] = TensorInfo{"F32", {4, 4}, 0, 0};
    EXPECT_THAT(Refusal(tensors, "a."),
                testing::StartsWith("tensor \"a." + std::string(name) + "\": " + meaning));
    EXPECT_THAT(Refusal(tensors, "a."), testing::EndsWith(" is not supported"));
  }
}

TEST(TensorLayouts, RotaryFrequenciesAnywhereInTheFileAreRefused) {
  TensorMap tensors = LayerOf("a.", {"q_proj", "k_proj", "v_proj", "o_proj"});
  tensors["model.rotary_emb.inv_freq"] = TensorInfo{"F32", {2}, 0, 0};
  EXPECT_EQ(Refusal(tensors, "a."),
            "tensor \"model.rotary_emb.inv_freq\": rotary position embedding is not supported");
}

TEST(TensorLayouts, APartOfAProjectionThatWouldBeLeftOutIsRefused) {
  for (const char* name : {"query.weight_scale", "key.bais", "value.parametrizations.weight.0"}) {
    TensorMap tensors = LayerOf("", {"query", "key", "value"});
    tensors[name] = TensorInfo{"F32", {4}, 0, 0};
    EXPECT_EQ(Refusal(tensors), "tensor \"" + std::string(name) +
                                    "\": belongs to a projection, but is no weight or bias of it");
  }
}

TEST(TensorLayouts, LayersAreFoundInTheOrderOfTheirNumbers) {
  TensorMap tensors = LayerOf("bert.encoder.layer.10.attention.",
                              {"self.query", "self.key", "self.value", "output.dense"});
  tensors.merge(LayerOf("bert.encoder.layer.9.attention.",
                        {"self.query", "self.key", "self.value", "output.dense"}));
  tensors.merge(LayerOf("pooler.", {"query", "key", "value"}));
  tensors.merge(LayerOf("classifier.", {"dense"}));
  EXPECT_THAT(FindLayerPrefixes(tensors),
              ElementsAre("bert.encoder.layer.9.attention.", "bert.encoder.layer.10.attention.",
                          "pooler."));
}

TEST(TensorLayouts, APlainLayerInAFolderNamedAttentionIsNoViT) {
  const TensorMap tensors = LayerOf("attention.", {"query", "key", "value", "output"});
  EXPECT_THAT(FindLayerPrefixes(tensors), ElementsAre("attention."));
  EXPECT_THAT(Refusal(tensors), HasSubstr("belongs to a projection"));
}

}  // namespace
}  // namespace attend
