#include "tests/bench/serving_load.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "tests/core/random_layer.h"

namespace attend::bench {
namespace {

namespace fs = std::filesystem;

std::string NewPath(const char* kind) {
  static int count = 0;
  return fs::temp_directory_path() /
         ("attend-bench-" + std::to_string(getpid()) + "-" + kind + std::to_string(count++));
}

void WriteModel(const fs::path& folder, int64_t d_f, int64_t heads) {
  Random random(1);
  nlohmann::json header;
  std::vector<float> data;
  for (const char* name : {"query", "key", "value", "output"}) {
    const size_t begin = data.size() * sizeof(float);
    const float deviation = 1 / std::sqrt(static_cast<float>(d_f));
    for (int64_t i = 0; i < d_f * d_f; ++i) data.push_back(random.Normal(deviation));
    header[std::string(name) + ".weight"] = {
        {"dtype", "F32"},
        {"shape", {d_f, d_f}},
        {"data_offsets", {begin, data.size() * sizeof(float)}}};
  }
  fs::create_directories(folder);
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::ofstream out(folder / "model.safetensors", std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), sizeof(length));
  out << text;
  out.write(reinterpret_cast<const char*>(data.data()),
            static_cast<std::streamsize>(data.size() * sizeof(float)));
  std::ofstream(folder / "attend.json")
      << nlohmann::json{{"kind", "attention"}, {"num_heads", heads}};
}

testing::Arguments LoadArguments(const std::string& address, const std::string& json,
                                 const testing::Arguments& flags) {
  testing::Arguments arguments = {
      ATTEND_BIN_DIR "/attend", "load", "--target", address, "--model", "layer", "--json", json};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

double NumberOr0(const nlohmann::json& value) {
  return value.is_number() ? value.get<double>() : 0;
}

}  // namespace

OnCpu::OnCpu(int cpu) {
  sched_getaffinity(0, sizeof(before_), &before_);
  if (cpu < 0) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

OnCpu::~OnCpu() { sched_setaffinity(0, sizeof(before_), &before_); }

ModelFolder::ModelFolder(int64_t d_f, int64_t heads) : root_(NewPath("models")) {
  WriteModel(fs::path(root_) / "layer" / "1", d_f, heads);
}

ModelFolder::~ModelFolder() { fs::remove_all(root_); }

EchoProcess::EchoProcess(int64_t d_f, bool refuse)
    : process({"/proc/self/exe", "--echo", std::to_string(d_f), refuse ? "refuse" : "answer"}),
      grpc_address(testing::FieldOf(process.WaitForLine("listening"), "grpc")) {}

Load::Load(const std::string& address, const testing::Arguments& flags)
    : json_(NewPath("load")), process_(LoadArguments(address, json_, flags)) {}

Load::~Load() { fs::remove(json_); }

LoadFigures Load::Wait() {
  process_.Wait();
  // Not by its exit code: that every call was refused may be what is asked for.
  std::ifstream in(json_);
  const auto json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded()) {
    fprintf(stderr, "attend load failed: %s\n", process_.err().c_str());
    std::exit(2);
  }
  LoadFigures figures;
  figures.offered_rate = json["offered_rate"];
  figures.achieved_rate = json["achieved_rate"];
  figures.items_per_second = json["items_per_s"];
  figures.p50 = NumberOr0(json["latency_ms"]["p50"]);
  figures.p99 = NumberOr0(json["latency_ms"]["p99"]);
  figures.compute_p99 = NumberOr0(json["compute_ms"]["p99"]);
  figures.answered = json["answered"];
  // Refused calls are of the measured time's offered ones.
  figures.refused_rate =
      figures.offered_rate * json["refused"].get<double>() / json["offered"].get<double>();
  return figures;
}

double CpuSecondsOf(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(in, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double ResidentMibOf(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/statm");
  double all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace attend::bench
