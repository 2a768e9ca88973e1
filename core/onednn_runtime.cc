#include "core/onednn_runtime.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include "core/simd_float_mode.h"

namespace attend {
namespace {

// OpenMP is looked up rather than linked: it must be the one that oneDNN itself runs on, and a
// oneDNN without OpenMP needs nothing.
template <typename Function>
Function* LookUp(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void SetOpenMpThreads(int threads) {
  static const auto set = LookUp<void(int)>("omp_set_num_threads");
  if (set != nullptr) set(threads);
}

int OpenMpThreads() {
  static const auto get = LookUp<int()>("omp_get_max_threads");
  return get == nullptr ? 1 : get();
}

}  // namespace

std::string OneDnnVersion() {
  const dnnl_version_t& v = *dnnl_version();
  return std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch);
}

std::string OneDnnIsa() {
  const unsigned isa = dnnl_get_effective_cpu_isa();
  const auto has = [isa](unsigned bits) { return (isa & bits) == bits; };
  if (has(dnnl_cpu_isa_avx512_core)) return "AVX512";
  if (has(dnnl_cpu_isa_avx2)) return "AVX2";
  if (has(dnnl_cpu_isa_avx)) return "AVX";
  return has(dnnl_cpu_isa_sse41) ? "SSE4.1" : "generic";
}

void InitComputeThread() {
  SetFloatMode();
  SetOpenMpThreads(1);
}

SingleThreadScope::SingleThreadScope() : before_(OpenMpThreads()) { SetOpenMpThreads(1); }
SingleThreadScope::~SingleThreadScope() { SetOpenMpThreads(before_); }

}  // namespace attend
