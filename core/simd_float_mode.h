// How a computing thread rounds.
#pragma once

namespace attend {

// Sets the calling thread to round to nearest and to take and give denormals as zero (FTZ, DAZ), so
// that every worker computes the same bits whatever its creator had set. Applies until the thread
// ends. Any thread, any number of times.
void SetFloatMode();

}  // namespace attend
