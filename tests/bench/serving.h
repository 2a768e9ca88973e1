// What the server is held to under load: real processes, ratios measured in one run.
#pragma once

#include <set>
#include <string>

namespace attend::bench {

// Measures the goals of `parts` (small, mixed, long, overload; empty: all) and prints one line for
// each: name measured goal ok|short. Returns how many are short. Takes about four minutes.
int CheckServing(const std::set<std::string>& parts);

}  // namespace attend::bench
