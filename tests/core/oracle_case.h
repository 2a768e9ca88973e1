// A case of tests/oracle/cases: a model, a request and the answer that PyTorch gives in float64.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "core/parse_model.h"
#include "core/sequence.h"

namespace attend {

struct OracleCase {
  std::string name;
  ParsedModel model;
  std::vector<float> items, attention_bias;
  std::vector<uint8_t> key_mask, attention_mask;
  SequenceInput input;  // views of the above; scores and weights wanted where they are known
  std::vector<double> scores, weights, values;  // empty where not known

  OracleCase() = default;
  OracleCase(OracleCase&&) = default;
};

std::vector<std::string> OracleCaseNames();
absl::StatusOr<OracleCase> ReadOracleCase(const std::string& name);

}  // namespace attend
