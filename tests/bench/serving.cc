#include "tests/bench/serving.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "client/load/workload.h"
#include "tests/bench/measure.h"
#include "tests/bench/serving_load.h"
#include "tests/bench/workload.h"

namespace attend::bench {
namespace {

using testing::ServerProcess;

// A server and its load generator each have one.
constexpr int kServerCpu = 0, kGeneratorCpu = 1, kAnyCpu = -1;

int short_goals = 0;

enum Direction { kAtLeast, kAtMost };

void Report(const char* name, const Interval& measured, Direction direction, double goal) {
  const bool ok = direction == kAtLeast ? measured.high >= goal : measured.low <= goal;
  short_goals += !ok;
  printf("%-28s %.3f [%.3f, %.3f] %s%.3f %s\n", name, measured.median, measured.low, measured.high,
         direction == kAtLeast ? ">=" : "<=", goal, ok ? "ok" : "short");
  fflush(stdout);
}

void Report(const char* name, double measured, Direction direction, double goal) {
  Report(name, {measured, measured, measured}, direction, goal);
}

std::string Flag(const char* name, double value) { return name + ("=" + std::to_string(value)); }

LoadFigures RunLoadOn(int cpu, const std::string& address, const testing::Arguments& flags) {
  const OnCpu on(cpu);
  return RunLoad(address, flags);
}

// Calls and the server's CPU time for them.
struct Rate {
  double calls_per_second = 0, items_per_second = 0, cpu_us = 0;
};

Rate Saturate(int generator_cpu, pid_t server, const std::string& address,
              const testing::Arguments& flags) {
  const double before = CpuSecondsOf(server);
  const LoadFigures load = RunLoadOn(generator_cpu, address, flags);
  return {load.achieved_rate, load.items_per_second,
          1e6 * (CpuSecondsOf(server) - before) / static_cast<double>(load.answered)};
}

void SmallCalls(const char* name, int server_cpu, int generator_cpu) {
  const ModelFolder models(64, 1);
  const OnCpu on(server_cpu);
  ServerProcess server({models.flag(), "--drain-delay=0s"});
  EchoProcess echo(64, false);
  const testing::Arguments flags = {"--lengths=8", "--concurrency=64", "--duration=500ms",
                                    "--warm-up=0s"};
  std::vector<double> calls[2], cpu[2];
  const Interval ratio = RepeatPairs(12, [&] {
    const Rate bare = Saturate(generator_cpu, echo.process.pid(), echo.grpc_address, flags);
    const Rate ours = Saturate(generator_cpu, server.process.pid(), server.grpc_address, flags);
    calls[0].push_back(bare.calls_per_second), cpu[0].push_back(bare.cpu_us);
    calls[1].push_back(ours.calls_per_second), cpu[1].push_back(ours.cpu_us);
    return ours.calls_per_second / bare.calls_per_second;
  });
  printf("# echo %.0f calls/s of %.1f us of the server's CPU, attend %.0f of %.1f us\n",
         MedianOf(calls[0]).median, MedianOf(cpu[0]).median, MedianOf(calls[1]).median,
         MedianOf(cpu[1]).median);
  Report(name, ratio, kAtLeast, 0.8);
}

constexpr char kMixedLengths[] = "lognormal:8..512";

// Items a second that the core computes of the mixed load, alone on the server's CPU.
double CoreRate(const std::vector<int64_t>& lengths) {
  const OnCpu on(kServerCpu);
  Workload work({}, lengths);
  return static_cast<double>(work.items()) / work.RunHere();
}

std::vector<int64_t> LengthsOf(const char* lengths, int count) {
  client::MixPart part;
  part.lengths = *client::ParseLengths(lengths);
  const auto calls = client::MakeCalls({part}, client::Arrivals::kConstant, 0, 1);
  std::vector<int64_t> drawn;
  while (static_cast<int>(drawn.size()) < count) drawn.push_back(calls->Next()->items);
  return drawn;
}

void MixedLoad() {
  const ModelFolder models(768, 12);
  const OnCpu on(kServerCpu);
  ServerProcess server({models.flag(), "--drain-delay=0s"});
  EchoProcess echo(768, false);
  const auto flags = [](const char* duration) -> testing::Arguments {
    return {"--lengths",  kMixedLengths, "--concurrency=64",
            "--duration", duration,      "--warm-up=500ms"};
  };
  const std::vector<int64_t> lengths = LengthsOf(kMixedLengths, 100);
  double core = 0, bare = 0, ours = 0;
  const Interval ratio = RepeatPairs(20, [&] {
    core = CoreRate(lengths);
    bare = Saturate(kGeneratorCpu, echo.process.pid(), echo.grpc_address, flags("500ms"))
               .items_per_second;
    ours = Saturate(kGeneratorCpu, server.process.pid(), server.grpc_address, flags("2s"))
               .items_per_second;
    return ours * (1 / core + 1 / bare);
  });
  printf("# the last: core %.0f items/s, echo %.0f, attend %.0f\n", core, bare, ours);
  Report("mixed_of_core_and_echo", ratio, kAtLeast, 0.9);
}

// A long sequence, again and again, beside a stream of short ones.
void LongBesideShort(const char* short_name, const char* long_name, int server_cpu,
                     int generator_cpu) {
  constexpr double kTileMs = 1;
  const ModelFolder models(64, 1);
  const OnCpu on(server_cpu);
  ServerProcess server({models.flag(), "--drain-delay=0s"});
  const int workers =
      std::stoi(testing::FieldOf(server.process.WaitForLine("listening"), "threads"));
  const testing::Arguments stream = {"--lengths=32", "--rate=500", "--duration=4s",
                                     "--warm-up=500ms"};
  const testing::Arguments endless = {"--lengths=16384", "--concurrency=1", "--duration=4s",
                                      "--warm-up=0s"};
  std::vector<double> alone_p99, beside_p99, slowdowns, shorts;
  for (int round = 0; round < 5; ++round) {
    const double before = CpuSecondsOf(server.process.pid());
    const LoadFigures alone = RunLoadOn(generator_cpu, server.grpc_address, stream);
    const double busy = (CpuSecondsOf(server.process.pid()) - before) / 4.5;
    const double long_alone =
        1 / RunLoadOn(generator_cpu, server.grpc_address, endless).achieved_rate;
    LoadFigures beside, long_one;
    {
      const OnCpu generator(generator_cpu);
      Load company(server.grpc_address, endless);
      beside = RunLoad(server.grpc_address, stream);
      long_one = company.Wait();
    }
    // The stream asks for less than half, so the long one's share is the rest.
    const double fair = long_alone / (1 - std::min(0.5, busy / workers));
    alone_p99.push_back(alone.p99);
    beside_p99.push_back(beside.p99);
    shorts.push_back(beside.p99 / (2 * alone.p99 + kTileMs));
    slowdowns.push_back(1 / long_one.achieved_rate / fair);
  }
  printf("# %d workers; short p99 %.2f ms alone, %.2f ms beside\n", workers,
         MedianOf(alone_p99).median, MedianOf(beside_p99).median);
  Report(short_name, MedianOf(shorts), kAtMost, 1);
  Report(long_name, MedianOf(slowdowns), kAtMost, 1.3);
}

// Twice of what the server can do, for a minute.
void Overload() {
  const ModelFolder models(768, 12);
  const OnCpu on(kServerCpu);
  ServerProcess server({models.flag(), "--drain-delay=0s"});
  EchoProcess refuser(768, true);
  const testing::Arguments mixed = {"--lengths", kMixedLengths, "--warm-up=1s", "--attempts=1"};
  const auto with = [&](std::initializer_list<std::string> more) {
    testing::Arguments flags = mixed;
    flags.insert(flags.end(), more);
    return flags;
  };
  const LoadFigures best =
      RunLoadOn(kGeneratorCpu, server.grpc_address, with({"--concurrency=64", "--duration=15s"}));
  const double refusals =
      RunLoadOn(kGeneratorCpu, refuser.grpc_address, with({"--concurrency=64", "--duration=3s"}))
          .refused_rate;

  const OnCpu generator(kGeneratorCpu);
  Load load(server.grpc_address,
            with({Flag("--rate", 2 * best.achieved_rate), "--arrivals=poisson", "--duration=60s"}));
  std::this_thread::sleep_for(std::chrono::seconds(20));
  const double early = ResidentMibOf(server.process.pid());
  const LoadFigures result = load.Wait();
  const double late = ResidentMibOf(server.process.pid());

  const double spent_refusing = result.refused_rate / refusals;
  printf(
      "# best %.1f calls/s; at %.1f: %.1f answered, %.1f refused of at most %.0f; p99 %.0f ms "
      "accepted, %.0f ms of it computing at best; %.0f MiB after 20 s, %.0f at the end\n",
      best.achieved_rate, result.offered_rate, result.achieved_rate, result.refused_rate, refusals,
      result.p99, best.compute_p99, early, late);
  Report("overload_goodput", result.achieved_rate / (best.achieved_rate * (1 - spent_refusing)),
         kAtLeast, 0.95);
  constexpr double kDelayBoundMs = 1000;  // --max-queued-cost
  Report("overload_p99_of_bound", result.p99 / (kDelayBoundMs + best.compute_p99), kAtMost, 1);
  Report("overload_resident_growth", late / early, kAtMost, 1.05);
}

}  // namespace

int CheckServing(const std::set<std::string>& parts) {
  const auto wanted = [&](const char* part) { return parts.empty() || parts.count(part) > 0; };
  if (wanted("small")) {
    SmallCalls("small_calls_own_cores", kServerCpu, kGeneratorCpu);
    SmallCalls("small_calls_shared_cores", kAnyCpu, kAnyCpu);
  }
  if (wanted("mixed")) MixedLoad();
  if (wanted("long")) {
    LongBesideShort("short_beside_long_p99", "long_beside_short", kServerCpu, kGeneratorCpu);
    LongBesideShort("short_beside_long_p99_shared", "long_beside_short_shared", kAnyCpu, kAnyCpu);
  }
  if (wanted("overload")) Overload();
  return short_goals;
}

}  // namespace attend::bench
