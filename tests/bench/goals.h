// What the core is held to, as ratios measured in one run.
#pragma once

namespace attend::bench {

// Measures every goal and prints one line for each: name measured goal ok|short. A goal is ok when
// the confidence interval of its median reaches it. Returns how many are short.
int CheckGoals();

}  // namespace attend::bench
