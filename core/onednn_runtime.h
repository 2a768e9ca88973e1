// What oneDNN is on this machine.
#pragma once

#include <string>

namespace attend {

// "2.6.3"
std::string OneDnnVersion();
// The ISA that oneDNN dispatches to here, "AVX2" or "AVX512" and so on; ONEDNN_MAX_CPU_ISA caps it.
std::string OneDnnIsa();

}  // namespace attend
