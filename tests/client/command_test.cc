// The built `attend` command against a fake server: exit codes, messages, files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "client/npy.h"
#include "fake_server.h"
#include "tests/end_to_end/process.h"

namespace attend::client {
namespace {

using attend::testing::Finished;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Command : public ::testing::Test {
 protected:
  Command() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("command_test_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Command() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string WriteFloats(const std::string& name, std::vector<int64_t> shape) const {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<float> values(count);
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
    EXPECT_TRUE(WriteNpy(Path(name), shape, values).ok());
    return Path(name);
  }
  // A file whose header is a float32 one with its dtype changed, as `bytes` of data.
  std::string WriteAs(const std::string& name, const std::string& dtype, const std::string& shape,
                      const std::string& bytes) const {
    const std::string header =
        "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': " + shape + "}\n";
    std::ofstream out(Path(name), std::ios::binary);
    out << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header
        << bytes;
    return Path(name);
  }
  Finished Run(std::vector<std::string> arguments,
               const attend::testing::Environment& environment = {}) const {
    arguments.insert(arguments.begin(), ATTEND_BIN_DIR "/attend");
    return attend::testing::Run(arguments, environment);
  }
  Finished RunAt(const FakeServer& server, std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--target", server.target()});
    return Run(arguments);
  }

  std::filesystem::path folder_;
};

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST_F(Command, InferWritesWhatWasWantedAndTheFacts) {
  FakeServer server;
  const Finished result = RunAt(
      server, {"infer", "--model", "fake@7", "--items", WriteFloats("x.npy", {2, 3}), "--want",
               "values,weights", "--request-id", "my-id", "--causal", "--out", Path("new/out")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto values = ReadNpy(Path("new/out/values.npy"));
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->dtype, "<f4");
  EXPECT_THAT(*ToFloats(*values), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(ReadNpy(Path("new/out/weights.npy"))->shape, ElementsAre(1, 2, 2));
  EXPECT_FALSE(std::filesystem::exists(Path("new/out/scores.npy")));
  const std::string facts = ReadText(Path("new/out/response.json"));
  for (const char* part : {"\"request_id\": \"my-id\"", "\"version\": \"7\"", "\"queue_us\": 11",
                           "\"compute_us\": 22", "\"batch_requests\": 1", "\"batch_items\": 2"}) {
    EXPECT_THAT(facts, HasSubstr(part));
  }
  const v1::AttendRequest sent = server.requests().at(0);
  EXPECT_EQ(sent.version(), "7");
  EXPECT_TRUE(sent.causal());
}

TEST_F(Command, InferSendsEveryInputInItsOwnDtype) {
  FakeServer server;
  const Finished result =
      RunAt(server, {"infer", "--model", "fake", "--items",
                     WriteAs("x.npy", "<f2", "(1, 3)", std::string("\x00\x3c\x00\x3c\x00\x3c", 6)),
                     "--key-mask", WriteAs("k.npy", "|b1", "(1,)", "\x01"), "--attention-mask",
                     WriteAs("m.npy", "|b1", "(1, 1)", std::string(1, '\0')), "--attention-bias",
                     WriteAs("b.npy", "<f8", "(1, 1)", std::string(8, '\0')), "--want", "weights",
                     "--out", Path("out")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const v1::AttendRequest sent = server.requests().at(0);
  EXPECT_EQ(sent.items().dtype(), "F16");
  EXPECT_EQ(sent.items().data().size(), 6u);
  EXPECT_EQ(sent.key_mask().dtype(), "BOOL");
  EXPECT_EQ(sent.attention_mask().data(), std::string(1, '\0'));
  EXPECT_EQ(sent.attention_bias().dtype(), "F64");
}

TEST_F(Command, WrongFilesAreExit2AndNamedBeforeAnythingIsSent) {
  FakeServer server;
  const std::string items = WriteFloats("x.npy", {2, 3});
  const auto expect = [&](std::vector<std::string> flags, const std::string& message) {
    flags.insert(flags.begin(), {"infer", "--model", "fake", "--out", Path("out")});
    const Finished result = RunAt(server, flags);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  expect({"--items", Path("missing.npy")}, "No such file or directory");
  expect({"--items", WriteFloats("flat.npy", {6})}, "items: shape [6], expected [N, d_f]");
  expect({"--items", WriteAs("i.npy", "<i4", "(1, 1)", "abcd")}, "has dtype '<i4', expected float");
  expect({"--items", WriteAs("bad.npy", "<f4", "(2, 3)", "abcd")}, "items: ");
  expect({"--items", items, "--key-mask", WriteFloats("k.npy", {2})},
         "key_mask: " + Path("k.npy") + " has dtype '<f4', expected bool");
  expect({"--items", items, "--key-mask", WriteAs("k3.npy", "|b1", "(3,)", "\1\1\1")},
         "key_mask: shape [3], expected [2] for 2 items");
  expect({"--items", items, "--attention-bias", WriteFloats("b.npy", {2, 3})},
         "attention_bias: shape [2, 3], expected [2, 2] for 2 items");
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Command, AnUnwritableOutFolderIsExit2) {
  FakeServer server;
  const std::string file = WriteFloats("x.npy", {2, 3});
  const Finished result =
      RunAt(server, {"infer", "--model", "fake", "--items", file, "--out", file + "/sub"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("can't be made"));
}

TEST_F(Command, TheServersMessageIsPrintedAsItIsWithItsExitCode) {
  FakeServer server;
  const auto expect = [&](const std::string& model, int exit_code, const std::string& message) {
    const Finished result = RunAt(server, {"infer", "--model", model, "--items",
                                           WriteFloats("x.npy", {2, 3}), "--out", Path("o")});
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(result.err, message + "\n");
  };
  expect("other", 2, "no model 'other', served: fake");
  server.FailNext({grpc::StatusCode::INVALID_ARGUMENT, "items: shape\nwrong"}, 1);
  expect("fake", 2, "items: shape wrong");
  server.FailNext({grpc::StatusCode::INTERNAL, "broken, id 5"}, 1);
  expect("fake", 4, "broken, id 5");
  server.FailNext({grpc::StatusCode::DEADLINE_EXCEEDED, "too late"}, 1);
  expect("fake", 3, "too late");
  server.FailNext(QueueFull(), 1);
  expect("fake", 3, "queue full (try again in 1500 ms)");
}

TEST_F(Command, NoServerIsExit3) {
  for (const char* command : {"models", "explain", "health"}) {
    const Finished result = Run({command, "--target", "localhost:1"});
    EXPECT_EQ(result.exit_code, 3) << command;
    EXPECT_NE(result.err, "");
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(Command, WrongFlagsAreExit2AndHelpAndVersionAreExit0) {
  EXPECT_EQ(Run({}).exit_code, 2);
  EXPECT_EQ(Run({"no-such-command"}).exit_code, 2);
  EXPECT_EQ(Run({"infer"}).exit_code, 2);
  EXPECT_THAT(Run({"infer"}).err, HasSubstr("--items"));
  const Finished duration = Run({"health", "--deadline", "5"});
  EXPECT_EQ(duration.exit_code, 2);
  EXPECT_THAT(duration.err, HasSubstr("'5' is no duration"));
  EXPECT_EQ(Run({"--help"}).exit_code, 0);
  EXPECT_THAT(Run({"infer", "--help"}).out, HasSubstr("Example"));
  EXPECT_THAT(Run({"--version"}).out, StartsWith("attend "));
}

TEST_F(Command, FlagsComeFromTheEnvironmentToo) {
  FakeServer server;
  const Finished result =
      Run({"models"}, {{"ATTEND_TARGET", server.target()}, {"ATTEND_JSON", "true"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"name\": \"fake\""));
}

TEST_F(Command, AFlagOfSeveralValuesLeavesTheWordsAfterItAlone) {
  FakeServer first, second;
  const Finished result = Run({"explain", "--target", first.target() + "," + second.target(),
                               "--model", "fake", "--target", first.target(), "cat", "it"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("it -> cat 0.75"));
}

TEST_F(Command, ModelsPrintsATableOrOneModelsNames) {
  FakeServer server;
  EXPECT_EQ(
      RunAt(server, {"models"}).out,
      "MODEL  VERSION  KIND       d_f  d_k  d_v  d_out  HEADS  NORMALIZER  CAUSAL  MAX ITEMS\n"
      "fake         7  attention    3    0    0      3      1  softmax     no              0\n");
  const Finished one = RunAt(server, {"models", "fake"});
  EXPECT_THAT(one.out, HasSubstr("features: a, position, b\nitems: The, cat, it\n"));
  EXPECT_EQ(RunAt(server, {"models", "other"}).exit_code, 2);
}

TEST_F(Command, HealthTellsServingFromNotServing) {
  FakeServer server;
  const Finished serving = RunAt(server, {"health"});
  EXPECT_EQ(serving.exit_code, 0);
  EXPECT_EQ(serving.out, "SERVING\n");
  EXPECT_EQ(RunAt(server, {"health", "--service", "no.such.Service"}).exit_code, 2);
  server.SetServing(false);
  const Finished draining = RunAt(server, {"health"});
  EXPECT_EQ(draining.exit_code, 3);
  EXPECT_EQ(draining.err, "NOT_SERVING\n");
}

TEST_F(Command, ExplainNamesWhoAnswers) {
  FakeServer server;
  const Finished result = RunAt(server, {"explain", "--model", "fake", "the", "CAT, it."});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            "fake@7: how well did each item (column) answer each item's (row) question\n"
            "\n"
            "       the    CAT     it\n"
            "the   0.25      .      .\n"
            "CAT   0.75   0.25      .\n"
            "it       .   0.75   0.25\n"
            "\n"
            "the strongest answer to each:\n"
            "  the -> the 0.25\n"
            "  CAT -> the 0.75\n"
            "  it -> CAT 0.75\n");
  const v1::AttendRequest sent = server.requests().at(0);
  float features[9];
  ASSERT_EQ(sent.items().data().size(), sizeof(features));
  std::memcpy(features, sent.items().data().data(), sizeof(features));
  EXPECT_THAT(features, ElementsAre(1, 0, 2, 1, 1, 2, 1, 2, 2));
}

TEST_F(Command, ExplainTakesItemsOfAModelWithoutNames) {
  FakeServer server;
  const Finished result = RunAt(
      server, {"explain", "--model", "fake", "--items", WriteFloats("x.npy", {2, 3}), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(
      result.out,
      R"({"model":"fake","version":"7","items":["0","1"],"weights":[[[0.25,0.0],[0.75,0.25]]],)"
      R"("strongest":[{"head":0,"asks":0,"answers":0,"weight":0.25},)"
      R"({"head":0,"asks":1,"answers":0,"weight":0.75}],)"
      R"("values":[[0.0,1.0,2.0],[3.0,4.0,5.0]]})"
      "\n");
}

TEST_F(Command, ExplainNamesAnUnknownWordAndCloseOnes) {
  FakeServer server;
  const Finished result = RunAt(server, {"explain", "--model", "fake", "the", "kat"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "model 'fake' does not know the word 'kat'; it knows, among others: cat, it, The\n");
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Command, LoadCountsFailuresByCodeAndRefusedOnesApart) {
  FakeServer server;
  server.FailNext(QueueFull(), 3);
  const Finished result =
      RunAt(server, {"load", "--model", "fake", "--rate", "100", "--duration", "200ms", "--warm-up",
                     "0s", "--lengths", "2..5", "--json", Path("load.json")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("errors      RESOURCE_EXHAUSTED 3\n"));
  const std::string json = ReadText(Path("load.json"));
  EXPECT_THAT(json, HasSubstr("\"refused\": 3"));
  EXPECT_THAT(json, HasSubstr("\"answered\": 17"));
}

TEST_F(Command, LoadThatNobodyAnswersHasTheExitCodeOfTheFailure) {
  FakeServer server;
  server.FailNext(QueueFull(), 1'000'000);
  const Finished full = RunAt(server, {"load", "--model", "fake", "--rate", "100", "--duration",
                                       "100ms", "--warm-up", "0s", "--lengths", "2"});
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.err, HasSubstr("no call was answered"));
}

TEST_F(Command, LoadReplaysTracesAndDrawsFromMixFiles) {
  FakeServer server;
  std::ofstream(Path("trace")) << "0 2\n0.01 3 priority=1\n";
  const Finished trace = RunAt(server, {"load", "--model", "fake", "--trace", Path("trace")});
  EXPECT_THAT(trace.out, HasSubstr("(2 answered)")) << trace.err;
  std::ofstream(Path("mix")) << "1 7 priority=3\n";
  const Finished mix = RunAt(server, {"load", "--model", "fake", "--concurrency", "2", "--duration",
                                      "100ms", "--warm-up", "0s", "--lengths", Path("mix")});
  EXPECT_EQ(mix.exit_code, 0) << mix.err;
  EXPECT_EQ(server.requests().back().priority(), 3u);
  EXPECT_EQ(server.requests().back().items().shape(0), 7);
}

TEST_F(Command, LoadSweepsToAKnee) {
  FakeServer server;
  // Refusals from the start: no rate is sustained, and that is said.
  server.FailNext(QueueFull(), 1'000'000);
  const Finished result =
      RunAt(server, {"load", "--model", "fake", "--sweep", "--rate", "100", "--duration", "100ms",
                     "--warm-up", "0s", "--lengths", "2", "--json", Path("load.json")});
  EXPECT_THAT(result.out, HasSubstr("too much"));
  EXPECT_THAT(ReadText(Path("load.json")), HasSubstr("\"knee_rate\": 0.0"));
}

TEST_F(Command, WrongLoadFlagsAreExit2AndNamed) {
  FakeServer server;
  const auto expect = [&](std::vector<std::string> flags, const std::string& message) {
    flags.insert(flags.begin(), {"load", "--model", "fake"});
    const Finished result = RunAt(server, flags);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  expect({}, "--rate R, --concurrency C, --trace FILE or --sweep");
  expect({"--rate", "5", "--concurrency", "2"}, "--concurrency");
  expect({"--rate", "0"}, "--rate");
  expect({"--rate", "5", "--lengths", "9..8"}, "lengths '9..8'");
  expect({"--rate", "5", "--lengths", "1..999999999"}, "--max-message-bytes");
  expect({"--trace", Path("missing")}, "missing");
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace attend::client
