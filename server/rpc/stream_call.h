// The life of one bidirectional stream whose messages are exchanges of their own.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/mutex.h"
#include "server/rpc/completion_queue.h"
#include "server/rpc/exchange.h"
#include "server/rpc/live_calls.h"

namespace attend {

class StreamCall;

// The streams that live, so that a drain can end them. Thread-safe.
class LiveStreams {
 public:
  void Add(const std::shared_ptr<StreamCall>& stream);
  void Remove(StreamCall* stream);
  void BeginDrain();

 private:
  Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<StreamCall*, std::weak_ptr<StreamCall>> streams_ ABSL_GUARDED_BY(mutex_);
};

struct StreamMethod {
  using Stream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  const char* name = nullptr;
  // The generated RequestX of a raw method.
  std::function<void(grpc::ServerContext*, Stream*, grpc::ServerCompletionQueue*, void* tag)>
      accept;
  Handler handler;  // of each message
  // The message that carries an answer, and the one that says why there is none.
  std::function<grpc::ByteBuffer(grpc::ByteBuffer answer)> wrap;
  std::function<grpc::ByteBuffer(const ExchangeFacts&, const absl::Status&)> wrap_error;
  ExchangeObserver* observer = nullptr;
  LiveCalls* live = nullptr;
  LiveStreams* streams = nullptr;
};

// Reads on while few messages are unanswered and little is unsent, so a caller who does not read is
// not read from. Answers go out as they are ready, or in the requests' order when the call's
// metadata has "attend-order: request". A failed message does not end the stream. After the
// caller's half close, and when a drain begins (with UNAVAILABLE), what was read is answered and
// the stream ends. Owns itself, from Accept to the last event.
class StreamCall : public std::enable_shared_from_this<StreamCall> {
 public:
  static constexpr int kMaxUnanswered = 64;
  static constexpr int64_t kMaxUnsentBytes = int64_t{16} << 20;

  // `method` and `queue` outlive the call. Each accepted stream begins the wait for the next.
  static void Accept(const StreamMethod& method, grpc::ServerCompletionQueue* queue);

  StreamCall(const StreamMethod& method, grpc::ServerCompletionQueue* queue);
  ~StreamCall();
  void BeginDrain();

 private:
  class Item;

  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnOver();
  void OnAnswer(int64_t index, grpc::ByteBuffer message);
  std::shared_ptr<Item> TakeItem() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts whatever can be started now.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AdvanceEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Every operation given to gRPC keeps the call alive until its event.
  Event* Keep(Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release();

  const StreamMethod& method_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  StreamMethod::Stream stream_{&context_};
  Event accepted_, read_, written_, finished_, over_;
  Clock::time_point deadline_;
  int era_ = -1;

  Mutex mutex_;
  std::shared_ptr<StreamCall> self_ ABSL_GUARDED_BY(mutex_);
  int events_left_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer body_ ABSL_GUARDED_BY(mutex_);
  bool ordered_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool no_more_ ABSL_GUARDED_BY(mutex_) = false;  // half closed or gone
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // finished or gone
  int64_t next_index_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_sent_ ABSL_GUARDED_BY(mutex_) = 0;   // of an ordered stream
  int64_t unanswered_ ABSL_GUARDED_BY(mutex_) = 0;  // read and not yet written
  int64_t unsent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::weak_ptr<Item>> items_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, grpc::ByteBuffer> held_back_ ABSL_GUARDED_BY(mutex_);
  std::deque<grpc::ByteBuffer> outbox_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attend
