// The load tester's transport over real gRPC.
#include "client/load/grpc_transport.h"

#include <gtest/gtest.h>

#include <atomic>

#include "client/tensors.h"
#include "fake_server.h"

namespace attend::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<LoadTransport> TransportTo(const FakeServer& server, const std::string& model,
                                           int channels = 1, int threads = 1) {
  LoadTarget target{.channel = {.targets = {server.target()}, .retry = {.max_attempts = 1}},
                    .channels = channels,
                    .threads = threads,
                    .max_open_calls = 4,
                    .request = {},
                    .d_f = 3,
                    .longest = 50,
                    .seed = 1};
  target.request.set_model(model);
  target.request.add_want(v1::VALUES);
  auto transport = MakeGrpcTransport(target);
  EXPECT_TRUE(transport.ok()) << transport.status();
  return transport.ok() ? *std::move(transport) : nullptr;
}

TEST(GrpcTransport, EveryCallIsSentAsMeantAndAnsweredOnceWithItsTiming) {
  FakeServer server;
  const auto transport = TransportTo(server, "fake", 2, 2);
  std::atomic<int> good = 0;
  for (int64_t n = 1; n <= 50; ++n) {
    transport->Send({.items = n, .priority = 2}, seconds(30), [&](const LoadReply& reply) {
      good += reply.code == absl::StatusCode::kOk &&
              reply.timing->queue == std::chrono::microseconds(11) &&
              reply.timing->compute == std::chrono::microseconds(22);
    });
  }
  transport->WaitIdle();
  EXPECT_EQ(good, 50);
  int64_t items = 0;
  for (const v1::AttendRequest& request : server.requests()) {
    EXPECT_EQ(request.priority(), 2u);
    EXPECT_TRUE(Floats(request.items()).ok());
    items += request.items().shape(0);
  }
  EXPECT_EQ(items, 50 * 51 / 2);
}

TEST(GrpcTransport, FailuresKeepTheirCode) {
  FakeServer server;
  const auto transport = TransportTo(server, "other");
  absl::StatusCode code{};
  transport->Send({.items = 1}, seconds(30), [&](const LoadReply& reply) { code = reply.code; });
  transport->WaitIdle();
  EXPECT_EQ(code, absl::StatusCode::kNotFound);
  transport->Send({.items = 1}, milliseconds(-1),
                  [&](const LoadReply& reply) { code = reply.code; });
  transport->WaitIdle();
  EXPECT_EQ(code, absl::StatusCode::kDeadlineExceeded);
}

TEST(GrpcTransport, ACallMaySendTheNextOneBeyondTheBoundOnOpenCalls) {
  FakeServer server;
  const auto transport = TransportTo(server, "fake");
  std::atomic<int> answered = 0;
  const std::function<void(const LoadReply&)> twice = [&](const LoadReply&) {
    if (++answered > 20) return;
    transport->Send({.items = 1}, seconds(30), twice);
    transport->Send({.items = 1}, seconds(30), twice);
  };
  transport->Send({.items = 1}, seconds(30), twice);
  transport->WaitIdle();
  EXPECT_EQ(answered, 41);
}

TEST(GrpcTransport, AClosedLoopRunsOverIt) {
  FakeServer server;
  const auto transport = TransportTo(server, "fake");
  const auto calls = MakeCalls({{.lengths = {.lowest = 1, .highest = 50}, .deadline = seconds(30)}},
                               Arrivals::kConstant, 0, 1);
  const auto clock = MakeRealClock();
  LoadRun run({.duration = milliseconds(200), .window = milliseconds(20), .concurrency = 3},
              calls.get(), clock.get(), transport.get());
  const LoadResult result = run.Run();
  EXPECT_GT(result.answered, 0);
  EXPECT_EQ(result.answered, result.offered);
  EXPECT_EQ(result.all_calls, static_cast<int64_t>(server.requests().size()));
  EXPECT_GT(result.generator_ceiling(), 0);
}

}  // namespace
}  // namespace attend::client
