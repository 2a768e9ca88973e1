// attend models: what a server serves.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/flags.h"
#include "client/command/text_table.h"

namespace attend::client {
namespace {

struct ModelsFlags {
  ConnectionFlags connection;
  std::string model;
  bool json = false;
};

std::vector<std::string> ItemNames(const v1::ModelInfo& info) {
  std::vector<std::string> names;
  for (const v1::NamedItem& item : info.item_names()) names.push_back(item.name());
  return names;
}

// What the Open Inference Protocol tells.
nlohmann::ordered_json ToOipJson(const v1::ModelInfo& info) {
  return {{"name", info.name()}, {"version", info.version()}, {"kind", info.kind()},
          {"d_f", info.d_f()},   {"d_out", info.d_out()},     {"num_heads", info.num_heads()}};
}

nlohmann::ordered_json ToJson(const v1::ModelInfo& info, Protocol protocol) {
  if (protocol == Protocol::kOip) return ToOipJson(info);
  return {{"name", info.name()},
          {"version", info.version()},
          {"kind", info.kind()},
          {"d_f", info.d_f()},
          {"d_k", info.d_k()},
          {"d_v", info.d_v()},
          {"d_out", info.d_out()},
          {"num_heads", info.num_heads()},
          {"num_key_heads", info.num_key_heads()},
          {"normalizer", info.normalizer()},
          {"scale", info.scale()},
          {"causal", info.causal()},
          {"max_sequence_length", info.max_sequence_length()},
          {"feature_names",
           std::vector<std::string>(info.feature_names().begin(), info.feature_names().end())},
          {"item_names", ItemNames(info)}};
}

std::string OipTable(const std::vector<v1::ModelInfo>& models) {
  std::vector<std::vector<std::string>> rows = {
      {"MODEL", "VERSION", "KIND", "d_f", "d_out", "HEADS"}};
  for (const v1::ModelInfo& m : models) {
    rows.push_back({m.name(), m.version(), m.kind(), absl::StrCat(m.d_f()), absl::StrCat(m.d_out()),
                    absl::StrCat(m.num_heads())});
  }
  return TextTable(rows);
}

std::string Table(const std::vector<v1::ModelInfo>& models, Protocol protocol) {
  if (protocol == Protocol::kOip) return OipTable(models);
  std::vector<std::vector<std::string>> rows = {{"MODEL", "VERSION", "KIND", "d_f", "d_k", "d_v",
                                                 "d_out", "HEADS", "NORMALIZER", "CAUSAL",
                                                 "MAX ITEMS"}};
  for (const v1::ModelInfo& m : models) {
    rows.push_back({m.name(), m.version(), m.kind(), absl::StrCat(m.d_f()), absl::StrCat(m.d_k()),
                    absl::StrCat(m.d_v()), absl::StrCat(m.d_out()), absl::StrCat(m.num_heads()),
                    m.normalizer(), m.causal() ? "yes" : "no",
                    absl::StrCat(m.max_sequence_length())});
  }
  return TextTable(rows);
}

int PrintModel(ServerCalls& client, const ModelsFlags& flags) {
  const ModelName name = ParseModelName(flags.model);
  const auto info = client.GetModel(name.name, name.version, flags.connection.ToCallOptions());
  if (!info.ok()) return Report(info.status());
  if (flags.json) {
    std::puts(ToJson(*info, flags.connection.protocol).dump(2).c_str());
    return 0;
  }
  std::fputs(Table({*info}, flags.connection.protocol).c_str(), stdout);
  if (flags.connection.protocol == Protocol::kOip) return 0;
  std::printf("scale: %g   key heads: %lld\n", info->scale(),
              static_cast<long long>(info->num_key_heads()));
  if (!info->feature_names().empty()) {
    std::printf("features: %s\n", absl::StrJoin(info->feature_names(), ", ").c_str());
  }
  if (!info->item_names().empty()) {
    std::printf("items: %s\n", absl::StrJoin(ItemNames(*info), ", ").c_str());
  }
  return 0;
}

int Run(const ModelsFlags& flags) {
  const auto client = flags.connection.Connect();
  if (!client.ok()) return Report(client.status());
  if (!flags.model.empty()) return PrintModel(**client, flags);
  const auto models = (*client)->ListModels(flags.connection.ToCallOptions());
  if (!models.ok()) return Report(models.status());
  if (flags.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const v1::ModelInfo& model : *models) {
      list.push_back(ToJson(model, flags.connection.protocol));
    }
    std::puts(list.dump(2).c_str());
  } else {
    std::fputs(Table(*models, flags.connection.protocol).c_str(), stdout);
  }
  return 0;
}

}  // namespace

void AddModels(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ModelsFlags>();
  CLI::App* command = app.add_subcommand("models", "What the server serves");
  command->add_option("model", flags->model, "one model, with the names of its features and items")
      ->type_name("NAME[@VERSION]");
  command->add_flag("--json", flags->json, "print JSON");
  flags->connection.AddTo(*command);
  NameEnvironmentVariables(*command);
  command->footer(
      "Examples:\n"
      "  attend models\n"
      "  attend models demo@1 --json\n"
      "  attend models check checkpoints/bert");
  AddModelsCheck(*command, exit_code);
  command->callback([flags, command, exit_code] {
    if (command->get_subcommands().empty()) *exit_code = Run(*flags);
  });
}

}  // namespace attend::client
