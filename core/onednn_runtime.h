// What oneDNN is on this machine, and how a thread gets ready to call it.
#pragma once

#include <cstdint>
#include <string>

namespace attend {

// "2.6.3"
std::string OneDnnVersion();
// The ISA that oneDNN dispatches to here, "AVX2" or "AVX512" and so on; ONEDNN_MAX_CPU_ISA caps it.
std::string OneDnnIsa();

// Makes the calling thread fit to run tiles: SetFloatMode of core/simd_float_mode.h, and one OpenMP
// thread for its oneDNN calls, for the distribution builds oneDNN on OpenMP and the workers are
// ours. Call it first thing on every computing thread; any number of times.
void InitComputeThread();

// One OpenMP thread for the calling thread's oneDNN calls while it lives.
class SingleThreadScope {
 public:
  SingleThreadScope();
  ~SingleThreadScope();
  SingleThreadScope(const SingleThreadScope&) = delete;
  SingleThreadScope& operator=(const SingleThreadScope&) = delete;

 private:
  int before_;
};

// The process's cache of oneDNN primitives, one for every shape class in use. Thread-safe.
struct PrimitiveCacheStats {
  int64_t size = 0;      // primitives held now
  int64_t capacity = 0;  // the most that are ever held
  int64_t hits = 0;
  int64_t misses = 0;  // primitives created since the process started
};
PrimitiveCacheStats GetPrimitiveCacheStats();

}  // namespace attend
