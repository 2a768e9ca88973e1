#include "server/rpc/utf8.h"

#include <cstdint>

namespace attend {
namespace {

// How many continuation bytes follow `lead`, and the range of the first; count < 0: no lead byte.
struct Form {
  int count;
  uint8_t low, high;
};

Form FormOf(uint8_t lead) {
  if (lead < 0x80) return {0, 0, 0};
  if (lead < 0xc2) return {-1, 0, 0};
  if (lead < 0xe0) return {1, 0x80, 0xbf};
  if (lead == 0xe0) return {2, 0xa0, 0xbf};
  if (lead == 0xed) return {2, 0x80, 0x9f};
  if (lead < 0xf0) return {2, 0x80, 0xbf};
  if (lead == 0xf0) return {3, 0x90, 0xbf};
  if (lead < 0xf4) return {3, 0x80, 0xbf};
  if (lead == 0xf4) return {3, 0x80, 0x8f};
  return {-1, 0, 0};
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    Form form = FormOf(static_cast<uint8_t>(text[i++]));
    if (form.count < 0 || i + form.count > text.size()) return false;
    for (; form.count > 0; --form.count, form.low = 0x80, form.high = 0xbf) {
      const auto next = static_cast<uint8_t>(text[i++]);
      if (next < form.low || next > form.high) return false;
    }
  }
  return true;
}

}  // namespace attend
