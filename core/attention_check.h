// What is refused before anything is computed.
#pragma once

#include <absl/status/status.h>

#include "core/attention_parameters.h"
#include "core/sequence.h"

namespace attend {

// INVALID_ARGUMENT naming the field of the request, what came and what was expected: N out of
// 1..max_sequence_length, a feature count other than d_f, a mask or bias of another size, a mask
// byte other than 0 and 1, an item that is not finite, a bias that is NaN or +inf, nothing wanted.
absl::Status CheckSequence(const AttentionConfig& config, const SequenceInput& sequence);

// INVALID_ARGUMENT naming the tensor and both sizes when config and weights disagree, or the first
// weight that is not finite.
absl::Status CheckParameters(const AttentionConfig& config, const AttentionWeights& weights);

}  // namespace attend
