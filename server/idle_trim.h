// Gives memory back to the system when there is nothing to do.
#pragma once

#include <functional>
#include <thread>

#include "core/mutex.h"

namespace attend {

// The allocator keeps what large bodies took: after three of 100 MB the process had 282 MB, and 27
// MB once trimmed, as at its start. Trimming while requests are computed would cost them page
// faults. The longer the server is idle, the less is worth a trim: large bodies are freed in steps,
// and a look between two of them must not leave the rest behind.
class IdleTrim {
 public:
  // Looks every few seconds, on a thread of its own. `idle` is called from it.
  explicit IdleTrim(std::function<bool()> idle);
  ~IdleTrim();

 private:
  void Run();

  const std::function<bool()> idle_;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace attend
