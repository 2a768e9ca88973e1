// The `attend` command against a real server: what a user sees and what a script tests for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "client/attend_client.h"
#include "client/npy.h"
#include "tests/end_to_end/process.h"

namespace attend::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kAttend[] = ATTEND_BIN_DIR "/attend";

class Cli : public ::testing::Test {
 protected:
  Cli()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                (std::string("cli_test_") +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Cli() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  Finished Attend(const ServerProcess& server, Arguments arguments) const {
    arguments.insert(arguments.begin(), kAttend);
    arguments.insert(arguments.end(), {"--target", server.grpc_address});
    return attend::testing::Run(arguments);
  }
  // Items [n, 13] for the demo model.
  std::string WriteItems(const std::string& name, int64_t n) const {
    EXPECT_TRUE(
        client::WriteNpy(Path(name), std::vector<int64_t>{n, 13}, std::vector<float>(n * 13, 0.5f))
            .ok());
    return Path(name);
  }

  const std::filesystem::path folder_;
};

TEST_F(Cli, ExplainOfTheDemoSentenceIsWhatTheDocumentationShows) {
  ServerProcess server;
  ASSERT_NE(server.grpc_address, "") << server.process.err();
  const Finished result = Attend(server, {"explain"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "demo@1: how well did each item (column) answer each item's (row) question\n"
            "\n"
            "           The    cat    sat   down  because     it    was  tired\n"
            "The          .   1.00      .      .        .      .      .      .\n"
            "cat          .      .   1.00      .        .      .      .      .\n"
            "sat          .   0.98      .      .        .   0.02      .      .\n"
            "down         .      .   0.98      .        .      .   0.02      .\n"
            "because      .      .   0.02      .        .      .   0.98      .\n"
            "it           .   1.00      .      .        .      .      .      .\n"
            "was          .   0.02      .      .        .   0.98      .      .\n"
            "tired        .      .      .      .        .   1.00      .      .\n"
            "\n"
            "the strongest answer to each:\n"
            "  The -> cat 1.00\n"
            "  cat -> sat 1.00\n"
            "  sat -> cat 0.98\n"
            "  down -> sat 0.98\n"
            "  because -> was 0.98\n"
            "  it -> cat 1.00\n"
            "  was -> it 0.98\n"
            "  tired -> it 1.00\n");
}

TEST_F(Cli, ExplainRefusesAWordThatTheModelDoesNotKnow) {
  ServerProcess server;
  const Finished result = Attend(server, {"explain", "the", "kat", "sat"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("'kat'"));
  EXPECT_THAT(result.err, HasSubstr("cat"));
}

TEST_F(Cli, InferWritesItsFiles) {
  ServerProcess server;
  const Finished result =
      Attend(server, {"infer", "--model", "demo@1", "--items", WriteItems("x.npy", 3), "--causal",
                      "--want", "values,scores,weights", "--out", Path("out")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(client::ReadNpy(Path("out/values.npy"))->shape.front(), 3);
  EXPECT_THAT(client::ReadNpy(Path("out/scores.npy"))->shape, ElementsAre(1, 3, 3));
  const auto weights = client::ReadNpy(Path("out/weights.npy"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  const std::vector<float> numbers = *client::ToFloats(*weights);
  EXPECT_EQ(numbers[0], 1.f);
  EXPECT_EQ(numbers[1], 0.f);
  std::ifstream in(Path("out/response.json"));
  const std::string facts(std::istreambuf_iterator<char>(in), {});
  EXPECT_THAT(facts, HasSubstr("\"version\": \"1\""));
  EXPECT_THAT(facts, HasSubstr("\"batch_items\": "));
}

TEST_F(Cli, TheServersRefusalIsOneLineAndExit2) {
  ServerProcess server;
  ASSERT_TRUE(
      client::WriteNpy(Path("wide.npy"), std::vector<int64_t>{1, 14}, std::vector<float>(14)).ok());
  const Finished wide =
      Attend(server, {"infer", "--items", Path("wide.npy"), "--out", Path("out")});
  EXPECT_EQ(wide.exit_code, 2);
  EXPECT_THAT(wide.err, HasSubstr("items"));
  EXPECT_THAT(wide.err, HasSubstr("14"));
  EXPECT_THAT(wide.err, HasSubstr("13"));
  EXPECT_EQ(std::count(wide.err.begin(), wide.err.end(), '\n'), 1) << wide.err;

  const Finished unknown = Attend(server, {"infer", "--model", "other", "--items",
                                           WriteItems("x.npy", 1), "--out", Path("out")});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("other"));

  std::ofstream(Path("bad.npy")) << "not an array";
  const Finished bad = Attend(server, {"infer", "--items", Path("bad.npy"), "--out", Path("out")});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.npy"));
}

TEST_F(Cli, ModelsAndHealthSpeakOfTheDemo) {
  ServerProcess server;
  EXPECT_THAT(Attend(server, {"models"}).out, HasSubstr("demo         1  attention"));
  EXPECT_THAT(Attend(server, {"models", "demo"}).out, HasSubstr("position_squared"));
  EXPECT_EQ(Attend(server, {"health", "--wait", "30s"}).out, "SERVING\n");
  EXPECT_EQ(Attend(server, {"health", "--service", "attend.v1.Attention"}).exit_code, 0);
}

TEST_F(Cli, AServerThatIsGoneIsExit3) {
  ServerProcess server({"--drain-delay=0s"});
  server.process.Signal(SIGTERM);
  ASSERT_EQ(server.process.Wait(), 0);
  for (const char* command : {"models", "health", "explain"}) {
    const Finished result = Attend(server, {command, "--deadline", "2s"});
    EXPECT_EQ(result.exit_code, 3) << command << ": " << result.err;
  }
}

TEST_F(Cli, LoadReportsWhatItOffered) {
  ServerProcess server;
  const Finished result =
      Attend(server, {"load", "--model", "demo", "--rate", "200", "--duration", "1s", "--warm-up",
                      "0s", "--lengths", "2..9", "--seed", "1", "--json", Path("load.json"),
                      "--hdr-log", Path("load.hlog")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("(200 calls)"));
  EXPECT_THAT(result.out, HasSubstr("(200 answered)"));
  std::ifstream in(Path("load.json"));
  const std::string json(std::istreambuf_iterator<char>(in), {});
  for (const char* key :
       {"\"offered_rate\": 200.0", "\"achieved_rate\"", "\"items_per_s\"", "\"latency_ms\"",
        "\"p99_99\": null", "\"refused\": 0", "\"errors\": {}"}) {
    EXPECT_THAT(json, HasSubstr(key));
  }
  std::ifstream log(Path("load.hlog"));
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(log), {}), HasSubstr("HISTFAAA"));
}

TEST_F(Cli, TheLibraryStreamsManySequences) {
  ServerProcess server;
  const auto client = client::AttendClient::Create({.targets = {server.grpc_address}});
  ASSERT_TRUE(client.ok()) << client.status();
  std::vector<v1::AttendRequest> requests(40);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].set_model(i == 7 ? "other" : "demo");
    const int64_t n = static_cast<int64_t>(i) + 1;
    client::SetFloats({n, 13}, std::vector<float>(n * 13, 0.5f), requests[i].mutable_items());
  }
  std::vector<int> answers(requests.size(), 0);
  const absl::Status status = (*client)->AttendMany(
      requests, {}, [&](size_t index, absl::StatusOr<v1::AttendResponse> answer) {
        ++answers[index];
        if (index == 7) {
          EXPECT_TRUE(absl::IsNotFound(answer.status())) << answer.status();
        } else {
          ASSERT_TRUE(answer.ok()) << answer.status();
          EXPECT_EQ(answer->values().shape(0), static_cast<int64_t>(index) + 1);
        }
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(answers, std::vector<int>(requests.size(), 1));
}

// A stall of two seconds can't hide: every call meant to be sent in it waits for its end.
TEST_F(Cli, AStoppedServerShowsInTheLatency) {
  ServerProcess server;
  Process load({kAttend, "load", "--model", "demo", "--rate", "100", "--duration", "6s",
                "--warm-up", "0s", "--lengths", "4", "--json", Path("load.json"), "--target",
                server.grpc_address});
  ASSERT_NE(load.WaitForLine("open loop"), "") << load.err();
  server.process.Signal(SIGSTOP);
  // Not for being right: the stall itself is what takes time.
  EXPECT_EQ(load.WaitFor(std::chrono::seconds(2)), std::nullopt);
  server.process.Signal(SIGCONT);
  ASSERT_EQ(load.Wait(), 0) << load.err();
  std::ifstream in(Path("load.json"));
  const std::string json(std::istreambuf_iterator<char>(in), {});
  const auto number_of = [&](const std::string& key) {
    const size_t at = json.find("\"" + key + "\": ");
    return at == std::string::npos ? -1 : std::stod(json.substr(at + key.size() + 4));
  };
  EXPECT_EQ(number_of("answered"), 600);
  EXPECT_GT(number_of("max"), 1'000);  // the first latency_ms; two seconds less what came before
  EXPECT_GT(number_of("p90"), 100);    // a third of the calls waited, up to 2 s
}

}  // namespace
}  // namespace attend::testing
