#include "server/rpc/completion_queue.h"

#include <chrono>
#include <utility>

namespace attend {
namespace {

// Whose thread this is.
thread_local const Pollers* t_pollers = nullptr;

}  // namespace

Pollers::Pollers(std::unique_ptr<grpc::ServerCompletionQueue> queue, int threads)
    : queue_(std::move(queue)), threads_(threads) {}

void Pollers::Start() {
  for (std::thread& thread : threads_) {
    thread = std::thread([this, queue = queue_.get()] {
      t_pollers = this;
      void* tag = nullptr;
      bool ok = false;
      while (queue->Next(&tag, &ok)) (*static_cast<Event*>(tag))(ok);
    });
  }
}

void Pollers::Post(absl::AnyInvocable<void()> work) {
  if (t_pollers == this) {
    work();
    return;
  }
  MutexLock lock(&mutex_);
  posted_.push_back(std::move(work));
  if (posted_.size() == 1) {
    alarm_.Set(queue_.get(), std::chrono::system_clock::time_point(), &run_posted_);
  }
}

void Pollers::RunPosted() {
  std::vector<absl::AnyInvocable<void()>> posted;
  {
    MutexLock lock(&mutex_);
    posted.swap(posted_);
    ++running_;
  }
  for (auto& work : posted) work();
  MutexLock lock(&mutex_);
  --running_;
  ran_.notify_all();
}

Pollers::~Pollers() {
  {
    MutexLock lock(&mutex_);
    while (!posted_.empty() || running_ > 0) ran_.wait(mutex_);
  }
  queue_->Shutdown();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) (*static_cast<Event*>(tag))(ok);
}

}  // namespace attend
