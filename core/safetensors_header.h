// The entries of a safetensors header, as its JSON says, before they are held against the file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include "core/safetensors.h"

namespace attend {

// INVALID_ARGUMENT with the place when the header is no JSON object of
// {"name": {"dtype": string, "shape": [uint64 ...], "data_offsets": [uint64, uint64]}} and an
// optional "__metadata__" of strings. As in the reference reader, a tensor that comes twice has the
// last entry's meaning, and other keys of an entry are passed over.
absl::StatusOr<TensorMap> ParseHeaderEntries(absl::string_view header);

}  // namespace attend
