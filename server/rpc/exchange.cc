#include "server/rpc/exchange.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <atomic>
#include <random>
#include <utility>

namespace attend {

std::string MakeRequestId() {
  static const uint32_t start = std::random_device()();
  static std::atomic<uint64_t> next{0};
  return absl::StrFormat("%08x-%x", start, next.fetch_add(1, std::memory_order_relaxed));
}

void Exchange::Finish(absl::StatusOr<grpc::ByteBuffer> answer) {
  absl::AnyInvocable<void()> dropped;
  {
    MutexLock lock(&mutex_);
    finished_ = true;
    dropped = std::exchange(cancel_, nullptr);
  }
  facts.duration = Clock::now() - arrival;
  if (facts.request_id.empty()) facts.request_id = MakeRequestId();
  observer_->OnExchange(facts, answer.status());
  if (answer.status().code() == absl::StatusCode::kInternal) {
    answer = absl::InternalError(absl::StrCat(
        "an error of the server, not of the request; its log has it under ", facts.request_id));
  }
  Send(std::move(answer));
}

void Exchange::OnLeave(absl::AnyInvocable<void()> cancel) {
  {
    MutexLock lock(&mutex_);
    if (finished_) return;
    if (!left_) {
      cancel_ = std::move(cancel);
      return;
    }
  }
  cancel();
}

void Exchange::Leave() {
  absl::AnyInvocable<void()> cancel;
  {
    MutexLock lock(&mutex_);
    left_ = true;
    cancel = std::exchange(cancel_, nullptr);
  }
  if (cancel) cancel();
}

}  // namespace attend
