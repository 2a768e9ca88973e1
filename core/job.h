// Work cut into tiles that any worker can compute: what a model gives to the executor.
#pragma once

#include <cstdint>
#include <span>

namespace attend {

// One piece of a job, about a millisecond at most. Only the job that made it can read it.
struct Tile {
  int32_t kind = 0;
  int32_t index = 0;
  double cost = 0;  // FLOP, for ranks and for the achieved rate
};

// What one worker keeps between tiles: scratch memory that grows to what its tiles need and stays.
class Workspace;

// The executor calls Claim, Finish and exhausted under its own lock, so they are short and take no
// other lock; Run comes without it, from several workers at once, each with its own tile.
class Job {
 public:
  virtual ~Job() = default;

  // Takes a tile that may run now. False: none is runnable now.
  virtual bool Claim(Tile* tile) = 0;
  // Computes the tile. Calls the completion of every sequence whose last tile this was.
  virtual void Run(const Tile& tile, Workspace& workspace) = 0;
  // After Run: makes what waited for the tile runnable; returns how many tiles became so.
  virtual int64_t Finish(const Tile& tile) = 0;
  // Every tile is finished and every sequence completed: the executor lets go of the job.
  virtual bool exhausted() const = 0;

  // Asks that tiles of sequence b not yet begun be left out; its completion is then called with
  // CANCELLED, unless it was completed before. Any thread, any time, more than once.
  virtual void Cancel(int64_t b) = 0;
};

}  // namespace attend
