// Work cut into tiles that any worker can compute: what a model gives to the executor.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

namespace attend {

// One piece of a job, about a millisecond at most. Only the job that made it can read it.
struct Tile {
  int32_t kind = 0;
  int32_t index = 0;
  double cost = 0;  // FLOP, for ranks and for the achieved rate
};

// What one worker keeps between tiles: scratch memory that grows to what its tiles need and stays.
class Workspace;

// Claim, runnable, Finish and exhausted are called under the executor's lock, so they are short and
// take no other lock; what they count changes through Claim and Finish alone. Run and Fail come
// without it, from several workers at once, each with its own tile.
class Job {
 public:
  virtual ~Job() = default;

  // How many tiles Claim would give now. May be 0 while tiles that others wait for are running.
  virtual int64_t runnable() const = 0;
  // Takes a tile that may run now. False exactly when runnable() is 0.
  virtual bool Claim(Tile* tile) = 0;
  // Computes the tile. Calls the completion of every sequence whose last tile this was.
  virtual void Run(const Tile& tile, Workspace& workspace) = 0;
  // Run threw (memory, oneDNN): every sequence that the tile serves completes with `status`, unless
  // it was completed before, and its tiles not yet begun are left out as after Cancel.
  virtual void Fail(const Tile& tile, const absl::Status& status) = 0;
  // After Run or Fail: makes what waited for the tile runnable; returns how many tiles became so.
  virtual int64_t Finish(const Tile& tile) = 0;
  // Every tile is finished and every sequence completed: the executor lets go of the job.
  virtual bool exhausted() const = 0;

  // Asks that tiles of sequence b not yet begun be left out: they are still claimed and finished,
  // but Run does nothing for b. Its completion is then called with CANCELLED by a Run, unless it
  // was completed before. Any thread, any time, more than once.
  virtual void Cancel(int64_t b) = 0;
};

}  // namespace attend
