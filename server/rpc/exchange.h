// One question and its answer, whatever call, stream or protocol it came by.
#pragma once

#include <absl/functional/any_invocable.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/mutex.h"
#include "server/batching/pending_request.h"

namespace attend {

// A request id for a caller that gave none: unique to this server's life and unlikely elsewhere.
std::string MakeRequestId();

// What logs and metrics may know of an exchange: never an item's value.
struct ExchangeFacts {
  absl::string_view method;  // "attend.v1.Attention/Attend"
  std::string model;         // empty unless it is a served model's name
  int64_t version = 0;       // the model's
  std::string request_id;
  int64_t items = 0;
  std::chrono::nanoseconds duration{0};  // arrival to the answer's handing over
};

// Told of every exchange once, on any thread; must not block.
class ExchangeObserver {
 public:
  virtual ~ExchangeObserver() = default;
  virtual void OnExchange(const ExchangeFacts& /*facts*/, const absl::Status& /*status*/) {}
};

// A handler takes it over, describes it in facts, and calls Finish once, now or later, from any
// thread. Everything but Finish and Leave belongs to the handler's thread.
class Exchange {
 public:
  Exchange(absl::string_view method, ExchangeObserver* observer) : observer_(observer) {
    facts.method = method;
  }
  virtual ~Exchange() = default;

  // An INTERNAL status is told to the observer whole, and to the caller as the id it is logged by.
  void Finish(absl::StatusOr<grpc::ByteBuffer> answer);
  // `cancel` is called once if the caller leaves, at once if it has left; kept until Finish.
  void OnLeave(absl::AnyInvocable<void()> cancel);
  // The caller has left: nobody waits for the answer, which must come nevertheless.
  void Leave();

  grpc::ByteBuffer body;
  Clock::time_point arrival;
  Clock::time_point deadline = Clock::time_point::max();
  ExchangeFacts facts;

 protected:
  virtual void Send(absl::StatusOr<grpc::ByteBuffer> answer) = 0;

 private:
  ExchangeObserver* const observer_;
  Mutex mutex_;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::AnyInvocable<void()> cancel_ ABSL_GUARDED_BY(mutex_);
};

using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace attend
