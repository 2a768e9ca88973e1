// The load tester's loops against a scripted server in scripted time.
#include "client/load/load_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "client/command/load_report.h"
#include "client/load/knee_search.h"

namespace attend::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A server that answers each call when its script says so. Time moves only in SleepUntil and
// WaitIdle, from one answer to the next.
class ScriptedServer : public LoadClock, public LoadTransport {
 public:
  struct Answer {
    nanoseconds at;  // when it arrives
    absl::StatusCode code = absl::StatusCode::kOk;
  };
  // `script(n, sent)` is the answer to the n-th call, sent at `sent`.
  explicit ScriptedServer(std::function<Answer(int64_t n, nanoseconds sent)> script)
      : script_(std::move(script)) {}

  nanoseconds now() override { return now_; }
  void SleepUntil(nanoseconds time) override {
    while (!due_.empty() && due_.begin()->first <= time) AnswerNext();
    now_ = std::max(now_, time);
  }
  void Send(const LoadCall&, nanoseconds, Done done) override {
    const Answer answer = script_(sent_++, now_);
    due_.emplace(answer.at, [done, answer] {
      done({.code = answer.code,
            .timing = {{.queue = milliseconds(3), .compute = milliseconds(4)}}});
    });
    most_open_ = std::max(most_open_, due_.size());
  }
  void WaitIdle() override {
    while (!due_.empty()) AnswerNext();
  }
  nanoseconds BusiestThreadCpu() override { return nanoseconds(1); }
  size_t most_open() const { return most_open_; }

 private:
  void AnswerNext() {
    auto first = due_.begin();
    now_ = std::max(now_, first->first);
    const std::function<void()> answer = first->second;
    due_.erase(first);
    answer();
  }

  const std::function<Answer(int64_t, nanoseconds)> script_;
  nanoseconds now_{0};
  int64_t sent_ = 0;
  size_t most_open_ = 0;
  std::multimap<nanoseconds, std::function<void()>> due_;
};

LoadResult RunOpen(ScriptedServer& server, double rate, nanoseconds duration,
                   nanoseconds warm_up = nanoseconds(0)) {
  const auto calls =
      MakeCalls({{.lengths = {.lowest = 10, .highest = 10}}}, Arrivals::kConstant, rate, 1);
  LoadRun run({.warm_up = warm_up, .duration = duration, .window = duration / 10}, calls.get(),
              &server, &server);
  return run.Run();
}

TEST(LoadRun, PercentilesAreThoseOfTheScriptWithinTheHistogramsPrecision) {
  // Call n takes (n mod 10,000) us + 1 us: every percentile is known.
  ScriptedServer server([](int64_t n, nanoseconds sent) {
    return ScriptedServer::Answer{sent + std::chrono::microseconds(n % 10'000 + 1)};
  });
  const LoadResult result = RunOpen(server, 10'000, seconds(10));
  EXPECT_EQ(result.answered, 100'000);
  for (const double percentile : {50.0, 90.0, 99.0, 99.9, 99.99}) {
    const double truth = percentile * 100'000;  // ns
    EXPECT_GE(result.latency.Percentile(percentile), truth - 1) << percentile;
    EXPECT_LE(result.latency.Percentile(percentile), truth * (1 + 1.0 / 1024)) << percentile;
  }
  EXPECT_EQ(result.latency.max(), 10'000'000);
  EXPECT_EQ(result.queue.Percentile(50) / 10'000, 300);
  EXPECT_EQ(result.compute.Percentile(50) / 10'000, 400);
}

TEST(LoadRun, AStalledServerIsChargedForEveryCallItKeptWaiting) {
  // 1 ms each, but nothing is answered from second 4 to second 6.
  ScriptedServer server([](int64_t, nanoseconds sent) {
    const nanoseconds done = sent + milliseconds(1);
    const bool stalled = done > seconds(4) && done < seconds(6);
    return ScriptedServer::Answer{stalled ? nanoseconds(seconds(6)) : done};
  });
  const LoadResult result = RunOpen(server, 1'000, seconds(10));
  EXPECT_EQ(result.answered, 10'000);
  EXPECT_EQ(result.latency.Percentile(50) / 10'000, 100);
  // A fifth of the calls waited for 2 s at most, evenly.
  EXPECT_NEAR(static_cast<double>(result.latency.Percentile(90)), 1e9, 1e7);
  EXPECT_NEAR(static_cast<double>(result.latency.Percentile(99)), 1.9e9, 2e7);
  EXPECT_NEAR(static_cast<double>(result.latency.max()), 2e9, 2e6);
}

TEST(LoadRun, AClosedLoopKeepsSoManyCallsOpenAndNoMore) {
  ScriptedServer server(
      [](int64_t, nanoseconds sent) { return ScriptedServer::Answer{sent + milliseconds(10)}; });
  const auto calls =
      MakeCalls({{.lengths = {.lowest = 10, .highest = 10}}}, Arrivals::kConstant, 0, 1);
  LoadRun run({.duration = seconds(10), .window = seconds(1), .concurrency = 5}, calls.get(),
              &server, &server);
  const LoadResult result = run.Run();
  EXPECT_EQ(server.most_open(), 5u);
  EXPECT_EQ(result.answered, 5'000);
  EXPECT_NEAR(result.achieved_rate(), 500, 1);
  EXPECT_EQ(result.latency.max(), 10'000'000);
  EXPECT_EQ(result.unstable, "");
}

TEST(LoadRun, OfferedAndAchievedDifferWhenTheServerFallsBehind) {
  // One call at a time, 2 ms each: half of the offered rate.
  nanoseconds free_at{0};
  ScriptedServer server([&](int64_t, nanoseconds sent) {
    free_at = std::max(free_at, sent) + milliseconds(2);
    return ScriptedServer::Answer{free_at};
  });
  const LoadResult result = RunOpen(server, 1'000, seconds(10));
  EXPECT_DOUBLE_EQ(result.offered_rate(), 1'000);
  EXPECT_NEAR(result.achieved_rate(), 500, 1);
  EXPECT_NEAR(result.items_per_second(), 5'000, 10);
  EXPECT_THAT(result.unstable, HasSubstr("medians"));
}

TEST(LoadRun, FailedCallsAreCountedByCodeAndDoNotTouchTheLatency) {
  ScriptedServer server([](int64_t n, nanoseconds sent) {
    return n % 4 == 0
               ? ScriptedServer::Answer{sent + seconds(1), absl::StatusCode::kResourceExhausted}
           : n % 4 == 1
               ? ScriptedServer::Answer{sent + seconds(2), absl::StatusCode::kDeadlineExceeded}
               : ScriptedServer::Answer{sent + milliseconds(1)};
  });
  const LoadResult result = RunOpen(server, 100, seconds(4));
  EXPECT_EQ(result.offered, 400);
  EXPECT_EQ(result.answered, 200);
  EXPECT_EQ(result.refused(), 100);
  EXPECT_EQ(result.errors.at(absl::StatusCode::kDeadlineExceeded), 100);
  EXPECT_EQ(result.latency.max(), 1'000'000);
  EXPECT_NEAR(result.achieved_rate(), 50, 0.1);
}

TEST(LoadRun, TheWarmUpIsSentButNotMeasured) {
  ScriptedServer server([](int64_t, nanoseconds sent) {
    return ScriptedServer::Answer{sent + (sent < seconds(2) ? milliseconds(500) : milliseconds(1))};
  });
  const LoadResult result = RunOpen(server, 100, seconds(3), seconds(2));
  EXPECT_EQ(result.all_calls, 500);
  EXPECT_EQ(result.offered, 300);
  EXPECT_DOUBLE_EQ(result.offered_rate(), 100);
  EXPECT_EQ(result.latency.max(), 1'000'000);
}

TEST(LoadRun, ASteadyServerIsStableAndOneThatSlowsDownIsNot) {
  ScriptedServer steady(
      [](int64_t, nanoseconds sent) { return ScriptedServer::Answer{sent + milliseconds(1)}; });
  EXPECT_EQ(RunOpen(steady, 100, seconds(10)).unstable, "");
  ScriptedServer slower([](int64_t, nanoseconds sent) {
    return ScriptedServer::Answer{sent + milliseconds(1) + sent / 20};
  });
  EXPECT_THAT(RunOpen(slower, 100, seconds(10)).unstable, HasSubstr("medians"));
  ScriptedServer stops([](int64_t, nanoseconds sent) {
    return ScriptedServer::Answer{sent < seconds(8) ? sent : nanoseconds(seconds(60))};
  });
  EXPECT_THAT(RunOpen(stops, 100, seconds(10)).unstable, HasSubstr("answered"));
}

TEST(LoadRun, WindowsCountAnswersWhenTheyCame) {
  ScriptedServer server(
      [](int64_t, nanoseconds sent) { return ScriptedServer::Answer{sent + milliseconds(1)}; });
  const LoadResult result = RunOpen(server, 100, seconds(10));
  ASSERT_EQ(result.windows.size(), 10u);
  EXPECT_EQ(result.windows[9].begin, seconds(9));
  EXPECT_EQ(result.windows[9].answered, 100);
  EXPECT_THAT(result.windows[9].log_line, HasSubstr("9.000,1.000,1.000,HISTFAAA"));
}

TEST(LoadRun, AStoppedRunMeasuresWhatItSent) {
  LoadRun* running = nullptr;
  ScriptedServer server([&](int64_t, nanoseconds sent) {
    if (sent >= seconds(2)) running->Stop();
    return ScriptedServer::Answer{sent + milliseconds(1)};
  });
  const auto calls =
      MakeCalls({{.lengths = {.lowest = 10, .highest = 10}}}, Arrivals::kConstant, 100, 1);
  LoadRun run({.duration = seconds(10), .window = seconds(1)}, calls.get(), &server, &server);
  running = &run;
  const LoadResult result = run.Run();
  EXPECT_EQ(result.offered, 201);
  EXPECT_NEAR(result.offered_rate(), 100, 1);
  EXPECT_THAT(result.unstable, HasSubstr("fewer than three"));
}

TEST(LoadRun, ATraceEndsTheRun) {
  ScriptedServer server([](int64_t, nanoseconds sent) { return ScriptedServer::Answer{sent}; });
  const auto calls = ReplayCalls({{.at = seconds(1), .items = 5}, {.at = seconds(2), .items = 6}});
  LoadRun run({.duration = seconds(10), .window = seconds(1)}, calls.get(), &server, &server);
  const LoadResult result = run.Run();
  EXPECT_EQ(result.items, 11);
  EXPECT_DOUBLE_EQ(result.offered_rate(), 1);
}

// A clock whose sleeps end late, as on a machine that has no time for the generator.
class LateClock : public ScriptedServer {
 public:
  using ScriptedServer::ScriptedServer;
  void SleepUntil(nanoseconds time) override { ScriptedServer::SleepUntil(time + milliseconds(5)); }
};

TEST(LoadRun, AGeneratorThatIsLateSaysSoAndItsLatenessCounts) {
  LateClock server(
      [](int64_t, nanoseconds sent) { return ScriptedServer::Answer{sent + milliseconds(1)}; });
  const LoadResult result = RunOpen(server, 100, seconds(5));
  EXPECT_THAT(result.sent_late(), HasSubstr("5.0 ms late"));
  EXPECT_THAT(result.sent_late(), HasSubstr("no processor"));
  EXPECT_EQ(result.generator_limit(), "");  // lateness alone is no want of strength
  EXPECT_EQ(result.latency.Percentile(50) / 1'000'000, 6);
  ScriptedServer punctual(
      [](int64_t, nanoseconds sent) { return ScriptedServer::Answer{sent + milliseconds(1)}; });
  EXPECT_EQ(RunOpen(punctual, 100, seconds(5)).sent_late(), "");
}

TEST(LoadReport, OnlyAGeneratorWithoutTimeLeftWasTheLimit) {
  LoadResult result;
  result.run_time = seconds(10);
  result.generator_cpu = seconds(8);
  result.sends_that_waited = 7;
  EXPECT_EQ(result.generator_limit(), "");
  EXPECT_EQ(result.sent_late(), "");
  for (int i = 0; i < 100; ++i) result.send_lag.Record(50'000'000);
  EXPECT_THAT(LoadText(result),
              AllOf(HasSubstr("SENT LATE"), HasSubstr("7 because --max-open-calls"),
                    Not(HasSubstr("THE LIMIT"))));
  EXPECT_EQ(LoadJson(result)["generator"]["was_the_limit"], false);
  result.generator_cpu = milliseconds(9'100);
  EXPECT_THAT(LoadText(result), HasSubstr("IT WAS THE LIMIT"));
  EXPECT_EQ(LoadJson(result)["generator"]["was_the_limit"], true);
}

TEST(LoadReport, APercentileNeedsTenValuesBeyondIt) {
  Histogram histogram;
  for (int i = 0; i < 999; ++i) histogram.Record(1'000'000);
  EXPECT_TRUE(PercentileMs(histogram, 90));
  EXPECT_FALSE(PercentileMs(histogram, 99));
  histogram.Record(1'000'000);
  EXPECT_DOUBLE_EQ(*PercentileMs(histogram, 99), 1.0);
  EXPECT_FALSE(PercentileMs(histogram, 99.9));
  for (int i = 0; i < 9'000; ++i) histogram.Record(1'000'000);
  EXPECT_TRUE(PercentileMs(histogram, 99.9));
}

TEST(LoadReport, JsonHasItsKeysAndNullsWhereSamplesAreTooFew) {
  ScriptedServer server([](int64_t n, nanoseconds sent) {
    return ScriptedServer::Answer{sent + milliseconds(1), n == 0
                                                              ? absl::StatusCode::kResourceExhausted
                                                              : absl::StatusCode::kOk};
  });
  const nlohmann::ordered_json json = LoadJson(RunOpen(server, 100, seconds(2)));
  EXPECT_DOUBLE_EQ(json["offered_rate"], 100);
  EXPECT_DOUBLE_EQ(json["achieved_rate"], 99.5);
  EXPECT_DOUBLE_EQ(json["items_per_s"], 995);
  EXPECT_DOUBLE_EQ(json["latency_ms"]["p50"], 1);
  EXPECT_TRUE(json["latency_ms"]["p99"].is_null());
  EXPECT_TRUE(json["latency_ms"]["p99_9"].is_null());
  EXPECT_TRUE(json["latency_ms"]["p99_99"].is_null());
  EXPECT_DOUBLE_EQ(json["latency_ms"]["max"], 1);
  EXPECT_EQ(json["refused"], 1);
  EXPECT_EQ(json["errors"]["RESOURCE_EXHAUSTED"], 1);
}

TEST(KneeSearch, ItDoublesThenHalvesToItsPrecision) {
  KneeSearch search(100, 0.05);
  int steps = 0;
  while (const std::optional<double> rate = search.NextRate()) {
    search.Report(*rate <= 777);
    ASSERT_LT(++steps, 20);
  }
  EXPECT_LE(search.best(), 777);
  EXPECT_GE(search.best(), 777 * 0.95);
}

TEST(KneeSearch, AServerThatSustainsNothingEndsTheSearch) {
  KneeSearch search(1'000);
  int steps = 0;
  while (search.NextRate() && ++steps < 100) search.Report(false);
  EXPECT_LT(steps, 100);
  EXPECT_EQ(search.best(), 0);
}

TEST(KneeSearch, AFirstGuessFarTooHighIsLowered) {
  KneeSearch search(1'000'000);
  while (const std::optional<double> rate = search.NextRate()) search.Report(*rate <= 50);
  EXPECT_GE(search.best(), 47);
  EXPECT_LE(search.best(), 50);
}

}  // namespace
}  // namespace attend::client
