#include "core/onednn_runtime.h"

#include <dlfcn.h>

#include <oneapi/dnnl/dnnl.h>

#include "core/simd_float_mode.h"

namespace attend {

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
  // Looked up rather than linked: it must be the OpenMP that oneDNN itself runs on, and a oneDNN
  // without OpenMP needs nothing.
  static const auto set_num_threads =
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set_num_threads != nullptr) set_num_threads(1);
}

}  // namespace attend
