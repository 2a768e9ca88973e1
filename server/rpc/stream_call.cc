#include "server/rpc/stream_call.h"

#include <vector>

#include "server/rpc/unary_call.h"

namespace attend {

void LiveStreams::Add(const std::shared_ptr<StreamCall>& stream) {
  bool draining = false;
  {
    MutexLock lock(&mutex_);
    streams_[stream.get()] = stream;
    draining = draining_;
  }
  if (draining) stream->BeginDrain();
}

void LiveStreams::Remove(StreamCall* stream) {
  MutexLock lock(&mutex_);
  streams_.erase(stream);
}

void LiveStreams::BeginDrain() {
  std::vector<std::shared_ptr<StreamCall>> streams;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    for (const auto& [raw, weak] : streams_) {
      if (auto stream = weak.lock()) streams.push_back(std::move(stream));
    }
  }
  for (const auto& stream : streams) stream->BeginDrain();
}

class StreamCall::Item : public Exchange {
 public:
  Item(std::shared_ptr<StreamCall> call, int64_t index)
      : Exchange(call->method_.name, call->method_.observer),
        call_(std::move(call)),
        index_(index) {}

 private:
  void Send(absl::StatusOr<grpc::ByteBuffer> answer) override {
    const StreamMethod& method = call_->method_;
    call_->OnAnswer(index_, answer.ok() ? method.wrap(*std::move(answer))
                                        : method.wrap_error(facts, answer.status()));
  }

  const std::shared_ptr<StreamCall> call_;
  const int64_t index_;
};

void StreamCall::Accept(const StreamMethod& method, grpc::ServerCompletionQueue* queue) {
  auto call = std::make_shared<StreamCall>(method, queue);
  MutexLock lock(&call->mutex_);
  call->self_ = call;
  call->context_.AsyncNotifyWhenDone(call->Keep(call->over_));
  method.accept(&call->context_, &call->stream_, queue, call->Keep(call->accepted_));
}

StreamCall::StreamCall(const StreamMethod& method, grpc::ServerCompletionQueue* queue)
    : method_(method), queue_(queue) {
  accepted_ = [this](bool ok) { OnAccepted(ok); };
  read_ = [this](bool ok) { OnRead(ok); };
  written_ = [this](bool ok) { OnWritten(ok); };
  finished_ = [this](bool) { Release(); };
  over_ = [this](bool) { OnOver(); };
}

StreamCall::~StreamCall() {
  if (era_ < 0) return;
  method_.streams->Remove(this);
  method_.live->End(era_);
}

Event* StreamCall::Keep(Event& event) {
  ++events_left_;
  return &event;
}

void StreamCall::Release() {
  std::shared_ptr<StreamCall> last;
  MutexLock lock(&mutex_);
  if (--events_left_ == 0) last.swap(self_);
}

void StreamCall::OnAccepted(bool ok) {
  // A call that never was is never over.
  if (!ok) Release();
  if (ok) {
    era_ = method_.live->Begin();
    deadline_ = DeadlineOf(context_);
    Accept(method_, queue_);
    const auto self = shared_from_this();
    {
      MutexLock lock(&mutex_);
      const auto order = context_.client_metadata().find("attend-order");
      ordered_ = order != context_.client_metadata().end() && order->second == "request";
      Advance();
    }
    method_.streams->Add(self);
  }
  Release();
}

std::shared_ptr<StreamCall::Item> StreamCall::TakeItem() {
  const int64_t index = next_index_++;
  auto item = std::make_shared<Item>(shared_from_this(), index);
  item->body = std::exchange(body_, grpc::ByteBuffer());
  item->arrival = Clock::now();
  item->deadline = deadline_;
  items_[index] = item;
  ++unanswered_;
  return item;
}

void StreamCall::OnRead(bool ok) {
  std::shared_ptr<Item> item;
  {
    MutexLock lock(&mutex_);
    if (!ok) {
      no_more_ = true;
    } else if (!ended_) {
      item = TakeItem();
    }
  }
  // Before the next read, so that requests are queued in the order they came in.
  if (item) method_.handler(item);
  {
    MutexLock lock(&mutex_);
    reading_ = false;
    Advance();
  }
  Release();
}

void StreamCall::OnAnswer(int64_t index, grpc::ByteBuffer message) {
  MutexLock lock(&mutex_);
  items_.erase(index);
  unsent_bytes_ += static_cast<int64_t>(message.Length());
  if (!ordered_) {
    outbox_.push_back(std::move(message));
  } else {
    held_back_[index] = std::move(message);
    for (auto next = held_back_.begin(); next != held_back_.end() && next->first == next_sent_;
         ++next_sent_) {
      outbox_.push_back(std::move(next->second));
      next = held_back_.erase(next);
    }
  }
  Advance();
}

void StreamCall::OnWritten(bool) {
  {
    MutexLock lock(&mutex_);
    unsent_bytes_ -= static_cast<int64_t>(outbox_.front().Length());
    outbox_.pop_front();
    --unanswered_;
    writing_ = false;
    Advance();
  }
  Release();
}

void StreamCall::OnOver() {
  std::vector<std::shared_ptr<Item>> left;
  {
    MutexLock lock(&mutex_);
    no_more_ = ended_ = true;
    for (const auto& [index, weak] : items_) {
      if (auto item = weak.lock()) left.push_back(std::move(item));
    }
  }
  for (const auto& item : left) item->Leave();
  Release();
}

void StreamCall::BeginDrain() {
  MutexLock lock(&mutex_);
  draining_ = true;
  Advance();
}

void StreamCall::Advance() {
  if (ended_) return;
  if (!writing_ && !outbox_.empty()) {
    writing_ = true;
    stream_.Write(outbox_.front(), Keep(written_));
  }
  if (!reading_ && !no_more_ && !draining_ && unanswered_ < kMaxUnanswered &&
      unsent_bytes_ < kMaxUnsentBytes) {
    reading_ = true;
    stream_.Read(&body_, Keep(read_));
  }
  AdvanceEnd();
}

void StreamCall::AdvanceEnd() {
  if (unanswered_ > 0 || !(no_more_ || draining_)) return;
  ended_ = true;
  stream_.Finish(no_more_ ? grpc::Status::OK
                          : grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                         "the server is draining; send what is unanswered again"),
                 Keep(finished_));
}

}  // namespace attend
