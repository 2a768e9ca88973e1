// What the hardware could do at most.
#pragma once

namespace attend::bench {

// FLOP/s of fused multiply-adds on registers alone, on the calling thread, over about a
// millisecond, with the widest vectors that oneDNN may use here.
double MeasureFmaPeak();

}  // namespace attend::bench
