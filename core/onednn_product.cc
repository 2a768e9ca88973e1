#include "core/onednn_product.h"

#include <absl/strings/str_cat.h>

#include <array>
#include <list>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <unordered_map>

#include "core/mutex.h"
#include "core/onednn_runtime.h"

namespace attend {
namespace {

using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr std::size_t kCacheCapacity = 1024;
constexpr int kScratchpadSlot = Workspace::kSlots - 1;

// Neither is ever destroyed: threads may still hold what was made with them.
const dnnl::engine& Engine() {
  static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

using Convolution = dnnl::convolution_forward;

Convolution::primitive_desc Describe(const ProductShape& shape) {
  const dnnl::memory::desc a({1, shape.inner, 1, shape.rows}, kFloat, Tag::nhwc);
  const dnnl::memory::desc b({shape.columns, shape.inner, 1, 1}, kFloat,
                             PackLanes() == 16 ? Tag::OIhw16i16o : Tag::OIhw8i8o);
  const dnnl::memory::desc c({1, shape.columns, 1, shape.rows}, kFloat, Tag::nhwc);
  const Dims stride = {1, 1}, padding = {0, 0};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  return {Engine(), kind, algorithm, a, b, c, stride, padding, padding, attributes};
#else
  return {{kind, algorithm, a, b, c, stride, padding, padding}, attributes, Engine()};
#endif
}

// oneDNN's exceptions end here.
template <typename Body>
absl::Status Guarded(const ProductShape& shape, Body body) {
  try {
    body();
    return absl::OkStatus();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("oneDNN: product [", shape.rows, ", ", shape.inner,
                                            "] x [", shape.inner, ", ", shape.columns,
                                            "]: ", e.what()));
  }
}

// What one thread needs to run one primitive: memory objects whose addresses are set at every call.
// Making them anew would cost as much as a small product.
struct Arguments {
  explicit Arguments(const Convolution::primitive_desc& descriptor)
      : a(descriptor.src_desc(), Engine(), nullptr),
        b(descriptor.weights_desc(), Engine(), nullptr),
        c(descriptor.dst_desc(), Engine(), nullptr),
        scratchpad(descriptor.scratchpad_desc(), Engine(), nullptr),
        list{{{DNNL_ARG_SRC, a.get()},
              {DNNL_ARG_WEIGHTS, b.get()},
              {DNNL_ARG_DST, c.get()},
              {DNNL_ARG_SCRATCHPAD, scratchpad.get()}}} {}

  dnnl::memory a, b, c, scratchpad;
  std::array<dnnl_exec_arg_t, 4> list;
};

struct ThreadState {
  dnnl::stream stream{Engine()};
  std::unordered_map<int64_t, Arguments> arguments;  // by the product's id
};

class ConvolutionProduct : public Product {
 public:
  ConvolutionProduct(const ProductShape& shape, int64_t id)
      : shape_(shape),
        id_(id),
        descriptor_(Describe(shape)),
        primitive_(descriptor_),
        scratch_floats_(descriptor_.scratchpad_desc().get_size() / sizeof(float) + 1) {}

  absl::Status Run(const float* a, const float* packed_b, float* c,
                   Workspace& workspace) const override {
    return Guarded(shape_, [&] {
      thread_local ThreadState thread;
      Arguments& arguments = FindArguments(thread);
      arguments.a.set_data_handle(const_cast<float*>(a));
      arguments.b.set_data_handle(const_cast<float*>(packed_b));
      arguments.c.set_data_handle(c);
      arguments.scratchpad.set_data_handle(workspace.Floats(kScratchpadSlot, scratch_floats_));
      dnnl::error::wrap_c_api(
          dnnl_primitive_execute(primitive_.get(), thread.stream.get(),
                                 static_cast<int>(arguments.list.size()), arguments.list.data()),
          "could not execute a primitive");
    });
  }

 private:
  Arguments& FindArguments(ThreadState& thread) const {
    const auto found = thread.arguments.find(id_);
    if (found != thread.arguments.end()) return found->second;
    // Some belong to products that are gone; a fresh start is simpler than telling which.
    if (thread.arguments.size() >= kCacheCapacity) thread.arguments.clear();
    return thread.arguments.try_emplace(id_, descriptor_).first->second;
  }

  const ProductShape shape_;
  const int64_t id_;
  const Convolution::primitive_desc descriptor_;
  const Convolution primitive_;
  const int64_t scratch_floats_;
};

// Least recently used out first.
class ProductCache {
 public:
  absl::StatusOr<std::shared_ptr<const Product>> Get(const ProductShape& shape) {
    MutexLock lock(&mutex_);
    const Key key(shape.rows, shape.inner, shape.columns);
    const auto found = products_.find(key);
    if (found != products_.end()) {
      ++hits_;
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
    ++misses_;
    std::shared_ptr<const Product> product;
    const absl::Status status = Guarded(shape, [&] {
      // How oneDNN cuts the work is fixed when the primitive is made.
      const SingleThreadScope one_thread;
      product = std::make_shared<ConvolutionProduct>(shape, misses_);
    });
    if (!status.ok()) return status;
    if (products_.size() == kCacheCapacity) {
      products_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(key, product);
    products_[key] = order_.begin();
    return product;
  }

  PrimitiveCacheStats stats() {
    MutexLock lock(&mutex_);
    return {static_cast<int64_t>(products_.size()), static_cast<int64_t>(kCacheCapacity), hits_,
            misses_};
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t>;
  using Order = std::list<std::pair<Key, std::shared_ptr<const Product>>>;
  Mutex mutex_;
  Order order_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  std::map<Key, Order::iterator> products_ ABSL_GUARDED_BY(mutex_);
  int64_t hits_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t misses_ ABSL_GUARDED_BY(mutex_) = 0;
};

ProductCache& Cache() {
  static ProductCache* const cache = new ProductCache;  // outlives every thread
  return *cache;
}

}  // namespace

int64_t PackLanes() {
  static const int64_t lanes = OneDnnIsa() == "AVX512" ? 16 : 8;
  return lanes;
}

absl::StatusOr<std::shared_ptr<const Product>> GetProduct(const ProductShape& shape) {
  return Cache().Get(shape);
}

PrimitiveCacheStats GetPrimitiveCacheStats() { return Cache().stats(); }

}  // namespace attend
