// Notices when there is work and nothing gets done.
#pragma once

#include <cstdint>

#include "server/batching/pending_request.h"

namespace attend {

// Thread-compatible.
class StallWatch {
 public:
  explicit StallWatch(Clock::duration timeout) : timeout_(timeout) {}

  // `tiles_done` so far, and whether tiles or requests wait now. True when stalled() has changed:
  // there has been work, and no tile done, at every look for `timeout`.
  bool Look(Clock::time_point now, int64_t tiles_done, bool work_waits) {
    if (!work_waits || !worked_ || tiles_done != tiles_done_) progress_ = now;
    worked_ = work_waits;
    tiles_done_ = tiles_done;
    const bool stalled = now - progress_ >= timeout_;
    const bool changed = stalled != stalled_;
    stalled_ = stalled;
    return changed;
  }
  bool stalled() const { return stalled_; }

 private:
  const Clock::duration timeout_;
  bool worked_ = false;
  int64_t tiles_done_ = 0;
  Clock::time_point progress_;
  bool stalled_ = false;
};

}  // namespace attend
