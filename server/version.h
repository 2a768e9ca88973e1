// What this build is.
#pragma once

#include <string>

namespace attend {

std::string VersionNumber();  // "0.1.0"
std::string CommitId();       // of the source, "unknown" outside a checkout
// "attend-server 0.1.0 (commit ..., AVX512, oneDNN 2.6.3)"
std::string VersionText();

}  // namespace attend
