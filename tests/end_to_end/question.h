// What the end-to-end tests ask the demo model.
#pragma once

#include <cstdint>
#include <string>

#include "attend/v1/attend.pb.h"

namespace attend::testing {

// n items of d_f zeros.
inline v1::AttendRequest Question(int64_t n, int64_t d_f) {
  v1::AttendRequest request;
  request.set_model("demo");
  request.mutable_items()->add_shape(n);
  request.mutable_items()->add_shape(d_f);
  request.mutable_items()->set_data(std::string(n * d_f * sizeof(float), '\0'));
  return request;
}

}  // namespace attend::testing
