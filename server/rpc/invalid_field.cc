#include "server/rpc/invalid_field.h"

#include <absl/strings/cord.h>

namespace attend {
namespace {

constexpr char kFieldPayload[] = "attend/field";

}  // namespace

absl::Status MakeInvalidField(absl::string_view field, absl::string_view why) {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat(field, ": ", why));
  status.SetPayload(kFieldPayload, absl::Cord(field));
  return status;
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldPayload);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace attend
