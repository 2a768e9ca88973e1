#include "server/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>

#include "server/observe/metrics_server.h"

namespace attend {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  std::string Text() const {
    return prometheus::TextSerializer().Serialize(metrics_.collectable()->Collect());
  }
  Metrics metrics_{{"1.2.3", "abcdef", "AVX2", "2.6.3"}};
};

TEST_F(MetricsTest, ExchangesAreCountedByMethodModelAndCode) {
  metrics_.OnExchange({"Attend", "m", "OK", std::nullopt, milliseconds(3)});
  metrics_.OnExchange({"Attend", "m", "OK", std::nullopt, milliseconds(3)});
  metrics_.OnExchange({"Attend", "", "NOT_FOUND", std::nullopt, milliseconds(3)});
  const std::string text = Text();
  EXPECT_THAT(text,
              HasSubstr("attend_requests_total{code=\"OK\",method=\"Attend\",model=\"m\"} 2"));
  EXPECT_THAT(text, HasSubstr("attend_requests_total{code=\"NOT_FOUND\",method=\"Attend\",model="
                              "\"unknown\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("attend_request_duration_seconds_count{method=\"Attend\",model=\"m\"} 2"));
}

TEST_F(MetricsTest, RefusalsAreCountedByReason) {
  metrics_.OnModelReady("m", milliseconds(1));
  metrics_.OnExchange(
      {"Attend", "m", "RESOURCE_EXHAUSTED", RefusalReason::kQueueFull, milliseconds(0)});
  const std::string text = Text();
  EXPECT_THAT(text,
              HasSubstr("attend_requests_refused_total{model=\"m\",reason=\"queue_full\"} 1"));
  EXPECT_THAT(text, HasSubstr("attend_requests_refused_total{model=\"m\",reason=\"expired\"} 0"));
}

TEST_F(MetricsTest, ARefusalBeforeItsModelIsKnownIsCountedToo) {
  metrics_.OnExchange(
      {"Attend", "", "INVALID_ARGUMENT", RefusalReason::kTooLarge, milliseconds(0)});
  EXPECT_THAT(Text(),
              HasSubstr("attend_requests_refused_total{model=\"unknown\",reason=\"too_large\"} 1"));
}

TEST_F(MetricsTest, AModelThatIsReadyTellsWhatItsLoadTook) {
  metrics_.OnModelReady("m", milliseconds(250));
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("attend_model_load_seconds{model=\"m\"} 0.25"));
  EXPECT_THAT(text,
              HasSubstr("attend_requests_refused_total{model=\"m\",reason=\"queue_full\"} 0"));
}

TEST_F(MetricsTest, BatchesAndRequestsFillTheirHistograms) {
  const std::string model = "m";
  metrics_.OnBatchStarted({model, 1, 3, 60, 1e6, milliseconds(2)});
  metrics_.OnBatchFinished({model, 1, milliseconds(2), milliseconds(4), 1e6});
  metrics_.OnRequestComputed({model, 1, 20, milliseconds(1), milliseconds(2)});
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("attend_batch_requests_sum{model=\"m\"} 3"));
  EXPECT_THAT(text, HasSubstr("attend_batch_items_sum{model=\"m\"} 60"));
  EXPECT_THAT(text, HasSubstr("attend_items_total{model=\"m\"} 20"));
  EXPECT_THAT(text, HasSubstr("attend_queue_duration_seconds_sum{model=\"m\"} 0.001"));
  EXPECT_THAT(text, HasSubstr("attend_compute_duration_seconds_sum{model=\"m\"} 0.002"));
  EXPECT_THAT(text, HasSubstr("attend_worker_seconds_total{model=\"m\"} 0.004"));
  EXPECT_THAT(text, HasSubstr("attend_worker_predicted_seconds_total{model=\"m\"} 0.002"));
}

TEST_F(MetricsTest, WhatIsSampledIsReadAtEveryScrape) {
  Metrics::Sampled now;
  metrics_.SampleWith([&now] { return now; });
  now = {4, 2, 1, 1000, {5, 50, milliseconds(7), 4096}};
  std::string text = Text();
  EXPECT_THAT(text, HasSubstr("attend_workers 4"));
  EXPECT_THAT(text, HasSubstr("attend_workers_busy 2"));
  EXPECT_THAT(text, HasSubstr("attend_queue_requests 5"));
  EXPECT_THAT(text, HasSubstr("attend_queue_cost_seconds 0.007"));
  EXPECT_THAT(text, HasSubstr("attend_held_bytes 4096"));
  EXPECT_THAT(text, HasSubstr("attend_flop_total 1000"));
  now.flop = 3000;
  EXPECT_THAT(Text(), HasSubstr("attend_flop_total 3000"));
  now.queue_limits = {4096, 0, milliseconds(2000), 1 << 20};
  now.primitives = {12, 256, 34};
  text = Text();
  EXPECT_THAT(text, HasSubstr("attend_queue_limit_requests 4096"));
  EXPECT_THAT(text, HasSubstr("attend_queue_limit_cost_seconds 2"));
  EXPECT_THAT(text, HasSubstr("attend_held_limit_bytes 1048576"));
  EXPECT_THAT(text, HasSubstr("attend_primitive_cache_size 12"));
  EXPECT_THAT(text, HasSubstr("attend_primitive_cache_capacity 256"));
  EXPECT_THAT(text, HasSubstr("attend_primitive_cache_misses_total 34"));
  metrics_.SampleWith(nullptr);
}

TEST_F(MetricsTest, TheBuildAndTheProcessAreTold) {
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("attend_build_info{commit=\"abcdef\",isa=\"AVX2\",onednn=\"2.6.3\","
                              "version=\"1.2.3\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("process_resident_memory_bytes 0\n")));
  EXPECT_THAT(text, Not(HasSubstr("process_open_fds 0\n")));
}

TEST_F(MetricsTest, EveryMetricHasHelp) {
  for (const auto& family : metrics_.collectable()->Collect()) {
    EXPECT_NE(family.help, "") << family.name;
  }
}

TEST_F(MetricsTest, AnAddressInUseIsAnErrorThatNamesIt) {
  const auto first = MetricsServer::Start("localhost:0", metrics_);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = MetricsServer::Start((*first)->address(), metrics_);
  EXPECT_THAT(second.status().message(), HasSubstr((*first)->address()));
  EXPECT_FALSE(MetricsServer::Start("nonsense", metrics_).ok());
}

}  // namespace
}  // namespace attend
