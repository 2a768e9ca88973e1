#include "server/version.h"

#include <absl/strings/str_cat.h>

#include "core/onednn_runtime.h"

#ifndef ATTEND_COMMIT
#define ATTEND_COMMIT "unknown"
#endif

namespace attend {

std::string VersionNumber() { return ATTEND_VERSION; }

std::string CommitId() { return ATTEND_COMMIT; }

std::string VersionText() {
  return absl::StrCat("attend-server ", VersionNumber(), " (commit ", CommitId(), ", ", OneDnnIsa(),
                      ", oneDNN ", OneDnnVersion(), ")");
}

}  // namespace attend
