// From the words of a command line to the items of a model that names some.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "attend/v1/attend.pb.h"

namespace attend::client {

// Words at white space, without the punctuation at their ends.
std::vector<std::string> SplitWords(const std::vector<std::string>& texts);

// The features [N, d_f] of `words` by the model's item_names, whatever their case. The features
// named "position" and "position_squared", if there are such, are the word's index and the square
// of it. INVALID_ARGUMENT naming the first word
// that is not known and those of the model's that come close, or a model without names.
absl::StatusOr<std::vector<float>> WordFeatures(const v1::ModelInfo& model,
                                                const std::vector<std::string>& words);

}  // namespace attend::client
