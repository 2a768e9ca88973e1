// `attend --protocol oip` beside `--protocol attend`, against a real server: the same answers, bit
// by bit, and what the Open Inference Protocol does not tell said clearly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "client/npy.h"
#include "tests/end_to_end/process.h"

namespace attend::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kItems = 37, kFeatures = 13;

std::string Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class Protocols : public ::testing::Test {
 protected:
  Protocols()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                (std::string("protocols_test_") +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Protocols() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  Finished Attend(const std::string& protocol, Arguments arguments) const {
    arguments.insert(arguments.begin(), ATTEND_BIN_DIR "/attend");
    arguments.insert(arguments.end(), {"--target", server_.grpc_address, "--protocol", protocol});
    return attend::testing::Run(arguments);
  }
  std::string WriteFloats(const std::string& name, const std::vector<int64_t>& shape) const {
    std::vector<float> values(shape[0] * shape[1]);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
    EXPECT_TRUE(client::WriteNpy(Path(name), shape, values).ok());
    return Path(name);
  }
  // A NumPy file of bools, every third one false but for each row's first.
  std::string WriteMask(const std::string& name, const std::vector<int64_t>& shape) const {
    std::string header = "{'descr': '|b1', 'fortran_order': False, 'shape': (";
    int64_t elements = 1;
    for (const int64_t extent : shape) {
      header += std::to_string(extent) + ",";
      elements *= extent;
    }
    header += ")}\n";
    std::ofstream out(Path(name), std::ios::binary);
    out << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0'
        << header;
    for (int64_t i = 0; i < elements; ++i)
      out << (i % shape.back() != 0 && i % 3 == 0 ? '\0' : '\1');
    return Path(name);
  }

  const std::filesystem::path folder_;
  ServerProcess server_;
};

TEST_F(Protocols, InferGivesEqualBitsWhateverIsAskedAndMasked) {
  const std::string items = WriteFloats("items.npy", {kItems, kFeatures});
  const Arguments variants[] = {
      {},
      {"--causal"},
      {"--priority", "1", "--request-id", "mine"},
      {"--model", "demo@1", "--key-mask", WriteMask("key_mask.npy", {kItems})},
      {"--attention-mask", WriteMask("attention_mask.npy", {kItems, kItems})},
      {"--attention-bias", WriteFloats("attention_bias.npy", {kItems, kItems})}};
  for (const Arguments& more : variants) {
    for (const std::string protocol : {"attend", "oip"}) {
      Arguments command = {"infer", "--items",     items, "--want", "values,scores,weights",
                           "--out", Path(protocol)};
      command.insert(command.end(), more.begin(), more.end());
      const Finished result = Attend(protocol, command);
      ASSERT_EQ(result.exit_code, 0) << result.err;
    }
    for (const std::string name : {"values", "scores", "weights"}) {
      EXPECT_EQ(Bytes(Path("attend/" + name + ".npy")), Bytes(Path("oip/" + name + ".npy")))
          << name;
    }
  }
  EXPECT_THAT(Bytes(Path("oip/response.json")), HasSubstr(R"("version": "1")"));
  EXPECT_THAT(Bytes(Path("oip/response.json")), Not(HasSubstr("queue_us")));
}

TEST_F(Protocols, ExplainOfItemsIsTheSameAndWordsAreRefusedWhereTheirItemsAreNotTold) {
  const std::string items = WriteFloats("items.npy", {5, kFeatures});
  const Finished native = Attend("attend", {"explain", "--items", items, "--json"});
  const Finished oip = Attend("oip", {"explain", "--items", items, "--json"});
  ASSERT_EQ(oip.exit_code, 0) << oip.err;
  EXPECT_EQ(native.out, oip.out);
  const Finished words = Attend("oip", {"explain", "The cat sat"});
  EXPECT_EQ(words.exit_code, 2);
  EXPECT_THAT(words.err, HasSubstr("--protocol attend"));
}

TEST_F(Protocols, HealthAndModelsSayWhatTheProtocolTells) {
  EXPECT_EQ(Attend("oip", {"health"}).out, "SERVING\n");
  const Finished service = Attend("oip", {"health", "--service", "attend.v1.Attention"});
  EXPECT_EQ(service.exit_code, 2);
  EXPECT_THAT(service.err, HasSubstr("--service"));
  const Finished models = Attend("oip", {"models"});
  EXPECT_EQ(models.exit_code, 0) << models.err;
  EXPECT_EQ(models.out,
            "MODEL  VERSION  KIND    d_f  d_out  HEADS\n"
            "demo         1  attend   13     12      1\n");
  EXPECT_EQ(Attend("oip", {"models", "demo"}).out, models.out);
  const Finished json = Attend("oip", {"models", "demo@1", "--json"});
  EXPECT_THAT(json.out, HasSubstr("\"d_out\": 12"));
  EXPECT_THAT(json.out, Not(HasSubstr("d_k")));
}

TEST_F(Protocols, ErrorsAreTheSame) {
  const std::string wrong = WriteFloats("wrong.npy", {2, 3});
  const Finished native = Attend("attend", {"infer", "--items", wrong, "--out", Path("out")});
  const Finished oip = Attend("oip", {"infer", "--items", wrong, "--out", Path("out")});
  EXPECT_EQ(native.exit_code, 2);
  EXPECT_EQ(oip.exit_code, 2);
  EXPECT_EQ(native.err, oip.err);
  EXPECT_EQ(Attend("oip", {"models", "absent"}).err, Attend("attend", {"models", "absent"}).err);
  const Finished unknown = Attend("http", {"health"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--protocol"));
}

TEST_F(Protocols, LoadIsOfferedByEither) {
  for (const std::string protocol : {"attend", "oip"}) {
    const Finished result = Attend(protocol, {"load", "--concurrency", "2", "--duration", "200ms",
                                              "--warm-up", "0s", "--lengths", "1..20", "--priority",
                                              "2", "--causal", "--json", Path("load.json")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("errors      none"));
    EXPECT_THAT(Bytes(Path("load.json")), Not(HasSubstr("\"answered\": 0,")));
  }
  const Finished absent = Attend("oip", {"load", "--rate", "1", "--model", "absent"});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("absent"));
}

// "--name TYPE (Env:NAME)" of a help text: environment variable to the flag and its type.
std::map<std::string, std::string> Variables(const Arguments& command) {
  Arguments with_help = command;
  with_help.push_back("--help");
  const std::string help = attend::testing::Run(with_help).out;
  std::map<std::string, std::string> found;
  const std::string open = " (Env:";
  for (size_t at = help.find(open); at != std::string::npos; at = help.find(open, at + 1)) {
    const size_t begin = help.rfind("--", at);
    const size_t name = at + open.size();
    std::string flag = help.substr(begin, at - begin);
    flag = flag.substr(0, flag.find_first_of("=:"));
    flag = flag.substr(0, flag.find(" REQUIRED"));
    found[help.substr(name, help.find(')', name) - name)] = flag;
  }
  EXPECT_FALSE(found.empty()) << help;
  return found;
}

TEST(EnvironmentVariables, NoneMeansOneThingToOneProgramAndAnotherToTheNext) {
  std::map<std::string, std::string> of_command;
  for (const std::string command : {"infer", "explain", "models", "health", "load"}) {
    for (const auto& [name, flag] : Variables({ATTEND_BIN_DIR "/attend", command})) {
      EXPECT_EQ(of_command.emplace(name, flag).first->second, flag) << command << " " << name;
    }
  }
  EXPECT_EQ(of_command.at("ATTEND_LOAD_JSON"), "--json FILE");
  EXPECT_EQ(of_command.at("ATTEND_JSON"), "--json");
  for (const auto& [name, flag] : Variables({ATTEND_BIN_DIR "/attend-server"})) {
    EXPECT_EQ(of_command.count(name), 0u) << name;
  }
}

}  // namespace
}  // namespace attend::testing
