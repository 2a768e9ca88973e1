#include "core/load_model.h"

#include <absl/strings/str_cat.h>

#include <new>

#include "core/attention_parameters.h"
#include "core/parse_model.h"

namespace attend {

absl::StatusOr<LoadedModel> LoadModel(const std::string& version_directory) try {
  absl::StatusOr<ParsedModel> parsed = ParseModel(version_directory);
  if (!parsed.ok()) return parsed.status();
  absl::StatusOr<std::unique_ptr<Model>> model =
      MakeAttentionModel(std::move(parsed->config), std::move(parsed->weights));
  if (!model.ok()) {
    return absl::Status(model.status().code(),
                        absl::StrCat(version_directory, ": ", model.status().message()));
  }
  return LoadedModel{*std::move(model), parsed->batching};
} catch (const std::bad_alloc&) {
  return absl::ResourceExhaustedError(
      absl::StrCat(version_directory, ": the weights don't fit into memory"));
}

}  // namespace attend
