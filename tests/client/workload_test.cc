#include "client/load/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace attend::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<LoadCall> Take(CallSource& source, int count) {
  std::vector<LoadCall> calls;
  while (static_cast<int>(calls.size()) < count) {
    const std::optional<LoadCall> call = source.Next();
    if (!call) break;
    calls.push_back(*call);
  }
  return calls;
}

class TextFile {
 public:
  explicit TextFile(const std::string& text)
      : path_((std::filesystem::path(::testing::TempDir()) /
               (std::string("workload_") +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                  .string()) {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

MixPart Uniform(int64_t lowest, int64_t highest) {
  return {.lengths = {.lowest = lowest, .highest = highest}};
}

TEST(Workload, LengthsAreParsed) {
  EXPECT_EQ(ParseLengths("64")->lowest, 64);
  EXPECT_EQ(ParseLengths("64")->highest, 64);
  EXPECT_EQ(ParseLengths("8..512")->highest, 512);
  EXPECT_FALSE(ParseLengths("8..512")->lognormal);
  EXPECT_TRUE(ParseLengths("lognormal:8..512")->lognormal);
}

TEST(Workload, WrongLengthsAreNamed) {
  for (const char* text :
       {"", "0", "8..", "..8", "9..8", "a..b", "8...9", "-1..2", "normal:1..2"}) {
    const auto lengths = ParseLengths(text);
    ASSERT_FALSE(lengths.ok()) << text;
    EXPECT_THAT(std::string(lengths.status().message()), HasSubstr(text));
  }
}

TEST(Workload, ConstantTimesAreMultiplesThatDoNotDrift) {
  const auto source = MakeCalls({Uniform(1, 1)}, Arrivals::kConstant, 3, 1);
  const std::vector<LoadCall> calls = Take(*source, 3'000'001);
  EXPECT_EQ(calls[1].at, nanoseconds(333'333'333));
  EXPECT_EQ(calls[3'000'000].at, std::chrono::seconds(1'000'000));
}

TEST(Workload, PoissonTimesHaveTheRateAndTheSpreadOfAnExponential) {
  const auto source = MakeCalls({Uniform(1, 1)}, Arrivals::kPoisson, 100, 5);
  const std::vector<LoadCall> calls = Take(*source, 40'000);
  double sum = 0, squares = 0;
  for (size_t i = 1; i < calls.size(); ++i) {
    const double gap = std::chrono::duration<double>(calls[i].at - calls[i - 1].at).count();
    ASSERT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double n = static_cast<double>(calls.size() - 1), mean = sum / n;
  // Five standard errors: 1/sqrt(n) of the mean, sqrt(20/n) of the mean square.
  EXPECT_NEAR(mean, 0.01, 0.01 * 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 2e-4, 1e-4 * 5 * std::sqrt(20 / n));
}

TEST(Workload, UniformLengthsReachBothEndsEvenly) {
  const auto source = MakeCalls({Uniform(3, 6)}, Arrivals::kConstant, 1, 2);
  int counts[10] = {};
  for (const LoadCall& call : Take(*source, 8'000)) ++counts[call.items];
  for (int length : {3, 4, 5, 6}) EXPECT_NEAR(counts[length], 2'000, 200);
  EXPECT_EQ(counts[3] + counts[4] + counts[5] + counts[6], 8'000);
}

TEST(Workload, LognormalLengthsKeepToTheirEndsWithTheirGeometricMeanInTheMiddle) {
  const auto source =
      MakeCalls({{.lengths = *ParseLengths("lognormal:10..1000")}}, Arrivals::kConstant, 1, 3);
  double log_sum = 0;
  for (const LoadCall& call : Take(*source, 10'000)) {
    ASSERT_GE(call.items, 10);
    ASSERT_LE(call.items, 1000);
    log_sum += std::log(call.items);
  }
  EXPECT_NEAR(std::exp(log_sum / 10'000), 100, 5);
}

TEST(Workload, TheSameSeedGivesTheSameCallsAndAnotherDoesNot) {
  const auto lengths = [](uint64_t seed) {
    const auto source = MakeCalls({Uniform(1, 1'000'000)}, Arrivals::kPoisson, 10, seed);
    std::vector<int64_t> all;
    for (const LoadCall& call : Take(*source, 20)) all.push_back(call.items + call.at.count());
    return all;
  };
  EXPECT_EQ(lengths(1), lengths(1));
  EXPECT_NE(lengths(1), lengths(2));
}

TEST(Workload, LengthsDoNotDependOnTheArrivals) {
  const auto first = MakeCalls({Uniform(1, 1'000)}, Arrivals::kPoisson, 10, 1);
  const auto second = MakeCalls({Uniform(1, 1'000)}, Arrivals::kConstant, 99, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(first->Next()->items, second->Next()->items);
}

TEST(Workload, AMixDrawsItsPartsByTheirShares) {
  const TextFile file(
      "# share lengths\n"
      "3  5            # short\n"
      "\n"
      "1  100..200 priority=1 deadline=50ms\n");
  const auto mix = ReadMix(file.path(), {.priority = 4, .deadline = std::chrono::seconds(9)});
  ASSERT_TRUE(mix.ok()) << mix.status();
  int shorts = 0;
  for (const LoadCall& call : Take(*MakeCalls(*mix, Arrivals::kConstant, 1, 1), 4'000)) {
    if (call.items == 5) {
      ++shorts;
      EXPECT_EQ(call.priority, 4u);
      EXPECT_EQ(call.deadline, std::chrono::seconds(9));
    } else {
      EXPECT_EQ(call.priority, 1u);
      EXPECT_EQ(call.deadline, std::chrono::milliseconds(50));
    }
  }
  EXPECT_NEAR(shorts, 3'000, 150);
}

TEST(Workload, ATraceIsReplayedAsItIs) {
  const TextFile file("0 5\n0.25,7,priority=2\n1.5 9 deadline=1s\n");
  const auto trace = ReadTrace(file.path(), {.deadline = std::chrono::seconds(3)});
  ASSERT_TRUE(trace.ok()) << trace.status();
  const auto source = ReplayCalls(*trace);
  const std::vector<LoadCall> calls = Take(*source, 10);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[1].at, std::chrono::milliseconds(250));
  EXPECT_EQ(calls[1].items, 7);
  EXPECT_EQ(calls[1].priority, 2u);
  EXPECT_EQ(calls[2].deadline, std::chrono::seconds(1));
}

TEST(Workload, WrongFilesAreNamedWithTheirLine) {
  const auto mix_error = [](const std::string& text) {
    return std::string(ReadMix(TextFile(text).path(), {}).status().message());
  };
  EXPECT_THAT(mix_error("1 5\nx 5\n"), HasSubstr(":2: share 'x'"));
  EXPECT_THAT(mix_error("-1 5\n"), HasSubstr("share '-1'"));
  EXPECT_THAT(mix_error("1 0\n"), HasSubstr("lengths '0'"));
  EXPECT_THAT(mix_error("1\n"), HasSubstr(":1: one word"));
  EXPECT_THAT(mix_error("1 5 colour=red\n"), HasSubstr("'colour=red'"));
  EXPECT_THAT(mix_error("1 5 deadline=0s\n"), HasSubstr("'deadline=0s'"));
  EXPECT_THAT(mix_error("# nothing\n"), HasSubstr("no line"));
  const auto trace_error = [](const std::string& text) {
    return std::string(ReadTrace(TextFile(text).path(), {}).status().message());
  };
  EXPECT_THAT(trace_error("1 5\n0.5 5\n"), HasSubstr(":2: time 0.5 is before"));
  EXPECT_THAT(trace_error("nan 5\n"), HasSubstr("time 'nan'"));
  EXPECT_THAT(trace_error("1 0\n"), HasSubstr("length '0'"));
  EXPECT_TRUE(absl::IsNotFound(ReadTrace("/no/such/trace", {}).status()));
}

}  // namespace
}  // namespace attend::client
