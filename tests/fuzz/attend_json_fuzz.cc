// Any bytes as an attend.json, held against the shapes of a layer.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/attend_json.h"
#include "core/parse_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto json =
      attend::ParseAttendJson(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!json.ok()) return 0;
  attend::LayerTensors layer;
  layer.query_weight = {"query.weight", 0, 24, 4};
  layer.key_weight = {"key.weight", 0, 12, 4};
  layer.value_weight = {"value.weight", 0, 12, 4};
  for (const bool multi_head : {false, true}) {
    layer.multi_head = layer.asks_causal = multi_head;
    const auto config = attend::ResolveConfig(*json, layer);
    if (!config.ok()) continue;
    const bool sound = config->num_heads * config->d_k == 24 &&
                       config->num_key_heads * config->d_k == 12 &&
                       config->num_heads % config->num_key_heads == 0 &&
                       std::isfinite(config->scale) && config->max_sequence_length > 0;
    if (!sound) std::abort();
  }
  return 0;
}
