// The bytes of request bodies held at any time, bounded.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace attend {

// Thread-safe. Reservations may outlive the budget's owner.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : state_(std::make_shared<State>()), limit_(limit) {}

  // Holds `bytes` until the returned object dies; null when they would exceed the limit.
  std::shared_ptr<const void> Reserve(int64_t bytes) {
    int64_t held = state_->held.load();
    do {
      if (held + bytes > limit_) return nullptr;
    } while (!state_->held.compare_exchange_weak(held, held + bytes));
    return std::make_shared<const Reservation>(state_, bytes);
  }
  int64_t held() const { return state_->held.load(); }
  int64_t limit() const { return limit_; }

 private:
  struct State {
    std::atomic<int64_t> held{0};
  };
  struct Reservation {
    Reservation(std::shared_ptr<State> state, int64_t bytes)
        : state(std::move(state)), bytes(bytes) {}
    ~Reservation() { state->held.fetch_sub(bytes); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

    const std::shared_ptr<State> state;
    const int64_t bytes;
  };

  const std::shared_ptr<State> state_;
  const int64_t limit_;
};

}  // namespace attend
