// attend-bench: the parts of a layer by Google Benchmark, with --goals what the core is held to,
// with --serving what the server is.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "tests/bench/goals.h"
#include "tests/bench/serving.h"
#include "tests/bench/serving_echo.h"
#include "tests/bench/workload.h"

namespace attend::bench {
namespace {

// Runs a layer each time that a line comes in, and answers with its seconds: how peers are timed in
// turns with it. The lengths are those of one batch.
int AnswerLines(int count, char** arguments) {
  if (count < 4) {
    fprintf(stderr, "usage: attend-bench --pipe THREADS D_F HEADS LENGTH...\n");
    return 2;
  }
  std::vector<int64_t> lengths;
  for (int i = 3; i < count; ++i) lengths.push_back(std::atoll(arguments[i]));
  Workload work({.d_f = std::atoll(arguments[1]), .heads = std::atoll(arguments[2])}, lengths);
  Executor executor({.threads = std::atoi(arguments[0])});
  for (int c = getchar(); c != EOF; c = getchar()) {
    if (c != '\n') continue;
    printf("%.9f\n", work.RunOn(executor));
    fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace attend::bench

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--goals") == 0) {
    return attend::bench::CheckGoals() == 0 ? 0 : 1;
  }
  if (argc > 1 && std::strcmp(argv[1], "--pipe") == 0) {
    return attend::bench::AnswerLines(argc - 2, argv + 2);
  }
  if (argc > 1 && std::strcmp(argv[1], "--serving") == 0) {
    return attend::bench::CheckServing({argv + 2, argv + argc}) == 0 ? 0 : 1;
  }
  if (argc == 4 && std::strcmp(argv[1], "--echo") == 0) {
    return attend::bench::ServeEcho(
        {.d_f = std::atoll(argv[2]), .refuse = std::strcmp(argv[3], "refuse") == 0});
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
