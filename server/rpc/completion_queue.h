// A completion queue polled by a few threads.
#pragma once

#include <absl/functional/any_invocable.h>
#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>
#include <vector>

namespace attend {

// What gRPC gets as a tag: called with the event's outcome each time it comes out of the queue.
using Event = absl::AnyInvocable<void(bool ok)>;

class Pollers {
 public:
  Pollers(std::unique_ptr<grpc::ServerCompletionQueue> queue, int threads);
  // Shuts the queue down, runs what is left in it, ends the threads.
  ~Pollers();

  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  void Start();

 private:
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace attend
