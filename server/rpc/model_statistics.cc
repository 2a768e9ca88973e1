#include "server/rpc/model_statistics.h"

namespace attend {

void ModelStatistics::OnBatchStarted(const BatchFacts& facts) {
  MutexLock lock(&mutex_);
  ++counts_[{facts.model, facts.version}].batches;
}

void ModelStatistics::OnRequestComputed(const RequestFacts& facts) {
  MutexLock lock(&mutex_);
  ModelCounts& counts = counts_[{facts.model, facts.version}];
  counts.queue.Add(facts.queue);
  counts.compute.Add(facts.compute);
}

void ModelStatistics::OnExchange(const ExchangeFacts& facts, const absl::Status& status) {
  if (facts.model.empty() || facts.items == 0) return;  // asked for nothing to be computed
  MutexLock lock(&mutex_);
  ModelCounts& counts = counts_[{facts.model, facts.version}];
  (status.ok() ? counts.success : counts.fail).Add(facts.duration);
  counts.last = std::chrono::system_clock::now();
}

ModelCounts ModelStatistics::Of(const std::string& model, int64_t version) const {
  MutexLock lock(&mutex_);
  const auto found = counts_.find({model, version});
  return found == counts_.end() ? ModelCounts() : found->second;
}

}  // namespace attend
