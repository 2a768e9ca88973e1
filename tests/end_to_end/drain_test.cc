// A server that is told to end while thousands of calls come in over many connections: whoever is
// answered, refused or cut off, the callers' count and the server's own agree.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attend/v1/attend.grpc.pb.h"
#include "tests/end_to_end/process.h"
#include "tests/end_to_end/question.h"

namespace attend::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kCallers = 6;
constexpr int kCallsOfEach = 1000;
constexpr int kOpenOfEach = 32;
constexpr int64_t kDemoFeatures = 13;

// A connection of its own that always has calls open, each on its own but for their number.
class Caller {
 public:
  Caller(const std::string& address, int64_t longest, std::atomic<int>* answered)
      : longest_(longest), answered_(answered), thread_([this, address] { Run(address); }) {}
  // How every one of its calls ended, by code and message. Waits for the last.
  const std::map<std::pair<int, std::string>, int>& ends() {
    if (thread_.joinable()) thread_.join();
    return ends_;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::AttendResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::AttendResponse>> reader;
  };

  void Run(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::Attention::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    grpc::CompletionQueue queue;
    int sent = 0;
    const auto send = [&] {
      auto* call = new Call;
      call->reader = stub->AsyncAttend(&call->context, Question(1 + sent * 37 % longest_, kDemoFeatures), &queue);
      call->reader->Finish(&call->response, &call->status, call);
      ++sent;
    };
    while (sent < kOpenOfEach) send();
    void* tag = nullptr;
    bool ok = false;
    for (int ended = 0; ended < kCallsOfEach && queue.Next(&tag, &ok); ++ended) {
      const std::unique_ptr<Call> call(static_cast<Call*>(tag));
      if (call->status.ok()) ++*answered_;
      ++ends_[{call->status.error_code(), call->status.error_message()}];
      if (sent < kCallsOfEach) send();
    }
  }

  const int64_t longest_;
  std::atomic<int>* const answered_;
  std::map<std::pair<int, std::string>, int> ends_;
  std::thread thread_;
};

class Drain : public ::testing::Test {
 protected:
  // A server whose queue takes all that comes: how long that may wait is for other tests.
  static std::vector<std::string> With(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--log-level=debug", "--max-queued-cost=1h"});
    return flags;
  }
  // Load until the server has ended, with `signal_it` called in the midst of it.
  void Load(ServerProcess& server, int64_t longest, const std::function<void()>& signal_it) {
    ASSERT_NE(server.grpc_address, "") << server.process.err();
    std::deque<Caller> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back(server.grpc_address, longest, &answered_);
    }
    while (answered_ < kCallers * kOpenOfEach) std::this_thread::yield();
    signal_it();
    for (Caller& caller : callers) {
      for (const auto& [end, count] : caller.ends()) ends_[end] += count;
    }
    exit_code_ = server.process.Wait();
    server.process.WaitForLine(std::string(1, '\0'));  // the end of its output
    log_ = server.process.err();
  }
  // Each call was answered or found the server unavailable, and no answer was lost on the way.
  void ExpectNoneLost() {
    int ended = 0;
    for (const auto& [end, count] : ends_) {
      ended += count;
      EXPECT_TRUE(end.first == grpc::StatusCode::OK || end.first == grpc::StatusCode::UNAVAILABLE)
          << count << " calls: " << end.first << " " << end.second;
    }
    EXPECT_EQ(ended, kCallers * kCallsOfEach);
    EXPECT_EQ(answered_, Logged("code=OK"));
    EXPECT_LT(answered_, ended) << "the load was over before the signal";
  }
  // Requests in the server's log whose line holds `text`.
  int Logged(const std::string& text) const {
    int count = 0;
    std::istringstream lines(log_);
    for (std::string line; std::getline(lines, line);) {
      const bool request = line.find("method=attend.v1.Attention/Attend ") != std::string::npos;
      count += request && line.find(text) != std::string::npos;
    }
    return count;
  }
  bool SomeoneHeard(const std::string& text) const {
    for (const auto& [end, count] : ends_) {
      if (end.second.find(text) != std::string::npos) return true;
    }
    return false;
  }

  std::atomic<int> answered_{0};
  std::map<std::pair<int, std::string>, int> ends_;
  int exit_code_ = -1;
  std::string log_;
};

const char kAbandoned[] = "shut down before the answer was computed";

TEST_F(Drain, AtOnceAnswersAllThatWasAcceptedAndRefusesTheRest) {
  ServerProcess server(With({"--drain-delay=0s"}));
  Load(server, 200, [&] { server.process.Signal(SIGTERM); });
  ExpectNoneLost();
  EXPECT_EQ(exit_code_, 0);
  EXPECT_THAT(log_, HasSubstr("all answered"));
  EXPECT_FALSE(SomeoneHeard(kAbandoned));
}

TEST_F(Drain, WithADelayAnswersWhatComesMeanwhileToo) {
  ServerProcess server(With({"--drain-delay=200ms"}));
  Load(server, 200, [&] { server.process.Signal(SIGTERM); });
  ExpectNoneLost();
  EXPECT_EQ(exit_code_, 0);
  EXPECT_THAT(log_, HasSubstr("all answered"));
  EXPECT_FALSE(SomeoneHeard(kAbandoned));
}

TEST_F(Drain, ASecondSignalCutsOffWhatIsLeft) {
  ServerProcess server(With({"--drain-delay=1h"}));
  Load(server, 4000, [&] {
    server.process.Signal(SIGTERM);
    server.process.WaitForLine("draining");
    server.process.Signal(SIGTERM);
  });
  ExpectNoneLost();
  EXPECT_EQ(exit_code_, 1);
  EXPECT_THAT(log_, HasSubstr("second signal"));
  EXPECT_TRUE(SomeoneHeard(kAbandoned));
}

TEST_F(Drain, WhatIsLeftAfterTheGracePeriodIsCutOff) {
  ServerProcess server(With({"--drain-delay=0s", "--grace-period=1ms"}));
  Load(server, 4000, [&] { server.process.Signal(SIGTERM); });
  ExpectNoneLost();
  EXPECT_EQ(exit_code_, 1);
  EXPECT_THAT(log_, HasSubstr("grace period over"));
  EXPECT_TRUE(SomeoneHeard(kAbandoned));
}

}  // namespace
}  // namespace attend::testing
