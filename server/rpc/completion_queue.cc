#include "server/rpc/completion_queue.h"

#include <utility>

namespace attend {

Pollers::Pollers(std::unique_ptr<grpc::ServerCompletionQueue> queue, int threads)
    : queue_(std::move(queue)), threads_(threads) {}

void Pollers::Start() {
  for (std::thread& thread : threads_) {
    thread = std::thread([queue = queue_.get()] {
      void* tag = nullptr;
      bool ok = false;
      while (queue->Next(&tag, &ok)) (*static_cast<Event*>(tag))(ok);
    });
  }
}

Pollers::~Pollers() {
  queue_->Shutdown();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) (*static_cast<Event*>(tag))(ok);
}

}  // namespace attend
