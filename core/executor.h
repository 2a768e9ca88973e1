// The workers: who computes which tile next.
#pragma once

#include <cstdint>
#include <memory>

#include "core/job.h"

namespace attend {

// Where a job stands among others, in units of the caller's virtual clock; lower goes first. The
// executor knows no clock: it adds what it has served to what it was given,
//   key(served) = start + handicap + min(cost, served + quantum),
// with `served` the share of `cost` whose tiles have been claimed. So a job no longer than the
// quantum is ranked by its virtual finish time, and a longer one proceeds a quantum at a time and
// keeps its share without being passed for ever (start-time fair queueing, Goyal, Vin and Cheng
// 1996). Equal keys: first in, first out.
struct Rank {
  double start = 0;
  double cost = 0;  // the job's whole cost over its weight
  double quantum = 0;
  double handicap = 0;  // how far others may get ahead of it: a priority that can't starve it
};

// A source of further jobs that workers ask whenever they are about to choose a tile: the batcher.
class JobSource {
 public:
  virtual ~JobSource() = default;
  // True when waiting work should become a job before a tile of key `next_key` is begun (+infinity
  // when the worker has nothing else to do). Called for every tile, under the executor's lock: an
  // atomic load or two (sequentially consistent, see Wake), no lock.
  virtual bool Wants(double next_key) const = 0;
  // Makes jobs of waiting work by calling Submit; whether it made any. When it made none, Wants
  // must be false until new work comes. Without the executor's lock.
  virtual bool Pump() = 0;
};

struct ExecutorOptions {
  int threads = 0;              // 0: UsableCpus() of core/cpu_quota.h
  JobSource* source = nullptr;  // outlives the executor
};

// A fixed set of worker threads. Each takes the next runnable tile of the job with the lowest key;
// with none to be had it sleeps. Every worker rounds to nearest and flushes denormals (FTZ, DAZ),
// and has a CPU of its own when the process is confined to exactly as many as there are workers.
// What a tile throws fails the sequences of that tile, never the process. Thread-safe.
class Executor {
 public:
  explicit Executor(const ExecutorOptions& options);
  // Finishes the submitted jobs, then stops the workers.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `job_cost` is the sum of the job's tile costs, in FLOP.
  void Submit(std::shared_ptr<Job> job, const Rank& rank, double job_cost);
  // Wakes a sleeping worker, if there is one, so that it asks the source; to be called after Wants
  // has become true. Cheap when all are busy.
  void Wake();
  // Returns when every submitted job is exhausted.
  void WaitIdle();

  int threads() const;
  struct Load {
    int busy_workers = 0;
    int64_t open_jobs = 0;
    int64_t tiles_done = 0;
    double flop_done = 0;
  };
  Load load() const;
  // The virtual clock: the highest start + served of any tile begun. Lock-free.
  double virtual_time() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attend
