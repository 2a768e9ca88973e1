// A completion queue polled by a few threads.
#pragma once

#include <absl/functional/any_invocable.h>
#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace attend {

// What gRPC gets as a tag: called with the event's outcome each time it comes out of the queue.
using Event = absl::AnyInvocable<void(bool ok)>;

class Pollers {
 public:
  Pollers(std::unique_ptr<grpc::ServerCompletionQueue> queue, int threads);
  // Runs what is posted, shuts the queue down, runs what is left in it, ends the threads.
  ~Pollers();

  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  void Start();
  // Runs `work` on one of the threads: at once when that is the caller, else soon, together with
  // what others post meanwhile. An answer that a worker sent itself would wake a thread for each of
  // its events and contend with it for the connection.
  void Post(absl::AnyInvocable<void()> work);

 private:
  void RunPosted();

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> threads_;

  Mutex mutex_;
  CondVar ran_;
  std::vector<absl::AnyInvocable<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  // Set when something is posted to nothing, so never twice before its event.
  grpc::Alarm alarm_;
  Event run_posted_ = [this](bool) { RunPosted(); };
};

}  // namespace attend
