// docs/operating.md's table of metrics is the exposition: every name, every label, nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "server/observe/metrics.h"

namespace attend {
namespace {

using Labels = std::set<std::string>;
using Table = std::map<std::string, Labels>;

// Of "`name{label,label}`, `name`" in the first column of rows that begin with a metric's name.
Table DocumentedMetrics() {
  std::ifstream page(ATTEND_SOURCE_DIR "/docs/operating.md");
  Table table;
  const std::regex metric("`((?:attend|process)_[a-z_]+)(?:\\{([a-z_,]+)\\})?`");
  const std::regex label("[a-z_]+");
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `attend_", 0) != 0 && line.rfind("| `process_", 0) != 0) continue;
    const std::string first = line.substr(0, line.find('|', 1));
    for (std::sregex_iterator found(first.begin(), first.end(), metric), end; found != end;
         ++found) {
      const std::string labels = (*found)[2];
      table[(*found)[1]] = Labels(std::sregex_token_iterator(labels.begin(), labels.end(), label),
                                  std::sregex_token_iterator());
    }
  }
  return table;
}

// After everything that can happen has happened once.
Table ExposedMetrics() {
  Metrics metrics({"1.2.3", "abcdef", "AVX2", "2.6.3"});
  const std::string model = "m";
  const std::chrono::milliseconds some(1);
  metrics.OnModelReady(model, some);
  metrics.OnModelChange("loaded");
  metrics.OnBatchStarted({model, 1, 3, 60, 1e6, some});
  metrics.OnBatchFinished({model, 1, some, some, 1e6});
  metrics.OnRequestComputed({model, 1, 20, some, some});
  metrics.OnExchange({"Attend", model, "OK", RefusalReason::kExpired, some});
  Table table;
  for (const auto& family : metrics.collectable()->Collect()) {
    Labels& labels = table[family.name];
    for (const auto& label : family.metric.at(0).label) labels.insert(label.name);
  }
  return table;
}

TEST(MetricsTable, TheDocumentationNamesWhatIsExposedAndNothingElse) {
  const Table exposed = ExposedMetrics();
  EXPECT_GT(exposed.size(), 30u);
  EXPECT_EQ(DocumentedMetrics(), exposed);
}

}  // namespace
}  // namespace attend
