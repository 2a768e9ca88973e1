// attend-server as a process: how it starts, what it refuses to start with, how it ends.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <thread>

#include "attend/v1/attend.grpc.pb.h"
#include "tests/end_to_end/http_get.h"
#include "tests/end_to_end/process.h"
#include "tests/end_to_end/question.h"

namespace attend::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kServer = ATTEND_BIN_DIR "/attend-server";

// Two reserved ports would cost two more lines in every test of a wrong flag.
Finished RunServer(Arguments flags, const Environment& environment = {}) {
  flags.insert(flags.begin(),
               {kServer, "--grpc-address=localhost:0", "--metrics-address=localhost:0"});
  return testing::Run(flags, environment);
}

std::unique_ptr<v1::Attention::Stub> StubOf(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  // One test's transparent retries must not hide what another one's server said.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return v1::Attention::NewStub(grpc::CreateCustomChannel(
      server.grpc_address, grpc::InsecureChannelCredentials(), arguments));
}

int64_t DemoFeatures(v1::Attention::Stub& stub) {
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_model("demo");
  v1::ModelInfo info;
  EXPECT_TRUE(stub.GetModel(&context, request, &info).ok());
  return info.d_f();
}

// Calls begun at once and answered in any order.
class Calls {
 public:
  Calls(v1::Attention::Stub& stub, int count, const v1::AttendRequest& request) {
    for (int i = 0; i < count; ++i) {
      Call& call = calls_.emplace_back();
      call.reader = stub.AsyncAttend(&call.context, request, &queue_);
      call.reader->Finish(&call.response, &call.status, &call);
    }
  }
  // Waits for the next answer.
  grpc::Status Next() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return static_cast<Call*>(tag)->status;
  }
  // The codes of `count` further answers, how many of each.
  std::map<int, int> Codes(int count) {
    std::map<int, int> codes;
    for (int i = 0; i < count; ++i) ++codes[Next().error_code()];
    return codes;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::AttendResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<v1::AttendResponse>> reader;
  };
  grpc::CompletionQueue queue_;
  std::deque<Call> calls_;
};

TEST(ServerProcess, AnswersAndSaysWhereAndWhatItServes) {
  ServerProcess server({"--drain-delay=0s"});
  const std::string line = server.process.WaitForLine("listening");
  EXPECT_EQ(FieldOf(line, "models"), "demo@1");
  for (const char* field : {"threads", "isa", "onednn", "version"}) {
    EXPECT_NE(FieldOf(line, field), "") << line;
  }
  const auto stub = StubOf(server);
  Calls calls(*stub, 1, Question(3, DemoFeatures(*stub)));
  EXPECT_TRUE(calls.Next().ok());
  const std::string metrics = HttpGet(server.metrics_address, "/metrics");
  EXPECT_THAT(metrics, HasSubstr("attend_requests_total{code=\"OK\",method=\"attend.v1.Attention/"
                                 "Attend\",model=\"demo\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("attend_items_total{model=\"demo\"} 3\n"));
  server.process.Signal(SIGTERM);
  EXPECT_EQ(server.process.Wait(), 0);
  EXPECT_THAT(server.process.err(), HasSubstr("draining"));
  EXPECT_THAT(server.process.err(), HasSubstr("all answered"));
}

TEST(ServerProcess, SigtermInTheMiddleOfCallsLosesNone) {
  ServerProcess server({"--drain-delay=2s"});
  const auto stub = StubOf(server);
  Calls calls(*stub, 200, Question(500, DemoFeatures(*stub)));
  EXPECT_TRUE(calls.Next().ok());
  server.process.Signal(SIGTERM);
  EXPECT_EQ(calls.Codes(199), (std::map<int, int>{{grpc::StatusCode::OK, 199}}));
  EXPECT_EQ(server.process.Wait(), 0);
}

TEST(ServerProcess, WithoutADelayWhatIsNotAcceptedIsUnavailable) {
  ServerProcess server({"--drain-delay=0s"});
  const auto stub = StubOf(server);
  Calls calls(*stub, 200, Question(2000, DemoFeatures(*stub)));
  EXPECT_TRUE(calls.Next().ok());
  server.process.Signal(SIGTERM);
  const std::map<int, int> codes = calls.Codes(199);
  for (const auto& [code, count] : codes) {
    EXPECT_THAT(code, AnyOf(grpc::StatusCode::OK, grpc::StatusCode::UNAVAILABLE)) << count;
  }
  EXPECT_EQ(server.process.Wait(), 0);
}

// Long enough to be at work whenever the signal comes.
v1::AttendRequest LongQuestion(v1::Attention::Stub& stub) {
  return Question(60000, DemoFeatures(stub));
}

TEST(ServerProcess, ASecondSignalEndsItAtOnceWithUnavailable) {
  ServerProcess server({"--drain-delay=1h"});
  const auto stub = StubOf(server);
  Calls calls(*stub, 8, LongQuestion(*stub));
  while (HttpGet(server.metrics_address, "/metrics").find("attend_workers_busy 0") !=
         std::string::npos) {
  }
  server.process.Signal(SIGTERM);
  server.process.WaitForLine("draining");
  server.process.Signal(SIGTERM);
  EXPECT_EQ(calls.Codes(8), (std::map<int, int>{{grpc::StatusCode::UNAVAILABLE, 8}}));
  EXPECT_EQ(server.process.Wait(), 1);
  EXPECT_THAT(server.process.err(), HasSubstr("second signal"));
}

TEST(ServerProcess, AfterTheGracePeriodTheRestIsUnavailable) {
  ServerProcess server({"--drain-delay=0s", "--grace-period=50ms"});
  const auto stub = StubOf(server);
  Calls calls(*stub, 8, LongQuestion(*stub));
  while (HttpGet(server.metrics_address, "/metrics").find("attend_workers_busy 0") !=
         std::string::npos) {
  }
  server.process.Signal(SIGTERM);
  EXPECT_EQ(calls.Codes(8), (std::map<int, int>{{grpc::StatusCode::UNAVAILABLE, 8}}));
  EXPECT_EQ(server.process.Wait(), 1);
  EXPECT_THAT(server.process.err(), HasSubstr("grace period over"));
}

// A repository of copies of an oracle case's model.
class Repository {
 public:
  Repository() {
    root_ = fs::temp_directory_path() / ("attend-repository-" + std::to_string(getpid()));
    fs::remove_all(root_);
  }
  ~Repository() { fs::remove_all(root_); }
  void AddGood(const std::string& name) {
    fs::create_directories(root_ / name / "1");
    for (const char* file : {"attend.json", "model.safetensors"}) {
      fs::copy_file(fs::path(ATTEND_ORACLE_DIR) / "causal" / file, root_ / name / "1" / file);
    }
  }
  void AddBroken(const std::string& name) {
    AddGood(name);
    std::ofstream(root_ / name / "1" / "attend.json") << "{\"kind\": \"attention\", \"hedas\": 2}";
  }
  std::string flag() const { return "--model-repository=" + root_.string(); }

 private:
  fs::path root_;
};

TEST(ServerProcess, BrokenModelsAreAllNamedAndEndTheStart) {
  Repository repository;
  repository.AddGood("good");
  repository.AddBroken("bad");
  repository.AddBroken("worse");
  const Finished finished = RunServer({repository.flag()});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("model bad version 1"));
  EXPECT_THAT(finished.err, HasSubstr("model worse version 1"));
  EXPECT_THAT(finished.err, HasSubstr("hedas"));
  EXPECT_THAT(finished.err, HasSubstr("--allow-partial"));
  EXPECT_THAT(finished.err, Not(HasSubstr("listening")));
}

TEST(ServerProcess, AllowPartialServesTheRest) {
  Repository repository;
  repository.AddGood("good");
  repository.AddBroken("bad");
  ServerProcess server({repository.flag(), "--drain-delay=0s"}, {{"ATTEND_ALLOW_PARTIAL", "1"}});
  EXPECT_EQ(FieldOf(server.process.WaitForLine("listening"), "models"), "good@1");
  EXPECT_THAT(server.process.err(), HasSubstr("model bad version 1"));
}

TEST(ServerProcess, AnEmptyOrMissingRepositoryIsAnError) {
  const Finished finished = RunServer({"--model-repository=/nowhere/at/all"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, HasSubstr("/nowhere/at/all"));
}

TEST(ServerProcess, AnAddressInUseIsAnErrorThatNamesIt) {
  ServerProcess first;
  const Finished grpc = RunServer({"--grpc-address=" + first.grpc_address});
  EXPECT_EQ(grpc.exit_code, 1);
  EXPECT_THAT(grpc.err, HasSubstr("can't listen on " + first.grpc_address));
  const Finished metrics = RunServer({"--metrics-address=" + first.metrics_address});
  EXPECT_EQ(metrics.exit_code, 1);
  EXPECT_THAT(metrics.err, HasSubstr("can't serve metrics on " + first.metrics_address));
}

TEST(ServerProcess, FlagsAreExplainedAndWrongOnesAreRefused) {
  const Finished help = testing::Run({kServer, "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("ATTEND_MAX_QUEUE_DELAY"));
  EXPECT_THAT(help.out, HasSubstr("Examples:"));
  const Finished version = testing::Run({kServer, "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr("oneDNN"));
  for (const char* wrong : {"--nosuch", "--max-queue-delay=fast", "--threads=-1",
                            "--max-message-bytes=lots", "--log-level=loud"}) {
    EXPECT_EQ(testing::Run({kServer, wrong}).exit_code, 2) << wrong;
  }
  EXPECT_EQ(testing::Run({kServer}, {{"ATTEND_LOG_FORMAT", "xml"}}).exit_code, 2);
}

TEST(ServerProcess, VariablesAreFlagsAndFlagsWin) {
  ServerProcess server({"--log-format=json", "--threads=1", "--drain-delay=0s"},
                       {{"ATTEND_LOG_FORMAT", "text"}, {"ATTEND_THREADS", "2"}});
  EXPECT_THAT(server.process.WaitForLine("listening"), HasSubstr("\"threads\":1"));
}

}  // namespace
}  // namespace attend::testing
