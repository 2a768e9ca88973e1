// UTF-8, as protobuf's strings must be.
#pragma once

#include <absl/strings/string_view.h>

namespace attend {

// Well-formed by the Unicode standard's table 3-7: no surrogates, no overlong forms.
bool IsUtf8(absl::string_view text);

}  // namespace attend
