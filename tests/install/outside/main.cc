// A project outside: the README's request, through the installed client library.
#include <client/attend_client.h>

#include <cstdio>

namespace {

// From README.md, line by line; a test holds the two together.
absl::Status Ask(int64_t N, int64_t d_f, const std::vector<float>& items) {
  auto client = attend::client::AttendClient::Create({.targets = {"localhost:8001"}});
  if (!client.ok()) return client.status();
  attend::v1::AttendRequest request;
  request.set_model("demo");
  attend::client::SetFloats({N, d_f}, items, request.mutable_items());  // one row an item
  auto answer = (*client)->Attend(request, {.deadline = std::chrono::seconds(5)});
  if (!answer.ok()) return answer.status();  // code, message, RetryAfter
  std::span<const float> values = *attend::client::Floats(answer->values());  // [N, d_out]

  std::printf("%zu values\n", values.size());
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Ask(2, 13, std::vector<float>(2 * 13, 0.5f));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
