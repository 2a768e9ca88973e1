// How many CPUs the workers may use, and which.
#pragma once

#include <string>
#include <thread>
#include <vector>

namespace attend {

// max(1, floor(min(cgroup quota, affinity))): more threads than that only wait for each other.
int UsableCpus();
// The same for a process that may run on `affinity` CPUs, with the files below `root`.
int UsableCpus(const std::string& root, int affinity);

// The CPUs to pin `threads` workers to, one each: those of the affinity mask if there are exactly
// as many; otherwise none. Left to itself the kernel of a virtual machine may wake two workers on
// one CPU and leave another idle, for it takes a halted CPU for one that its host has preempted.
std::vector<int> CpusToPin(int threads);
// The same for a process that may run on the CPUs `allowed`.
std::vector<int> CpusToPin(int threads, const std::vector<int>& allowed);

// Confines `thread` to `cpu`; a refusal by the system is no error, the thread then stays free.
void PinThread(std::thread& thread, int cpu);

}  // namespace attend
