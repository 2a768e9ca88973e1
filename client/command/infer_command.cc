// attend infer: one sequence from NumPy files, its answer into NumPy files.
#include <absl/strings/str_cat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/flags.h"
#include "client/command/npy_tensors.h"

namespace attend::client {
namespace {

struct InferFlags {
  ConnectionFlags connection;
  std::string model = "demo";
  InputFiles inputs;
  bool causal = false;
  std::vector<std::string> want = {"values"};
  uint32_t priority = 0;
  std::string request_id;
  std::string out;
};

absl::StatusOr<v1::AttendRequest> MakeRequest(const InferFlags& flags) {
  v1::AttendRequest request;
  if (absl::Status status = ReadInputs(flags.inputs, &request); !status.ok()) return status;
  const ModelName model = ParseModelName(flags.model);
  request.set_model(model.name);
  request.set_version(model.version);
  request.set_request_id(flags.request_id);
  request.set_causal(flags.causal);
  request.set_priority(flags.priority);
  for (const std::string& want : flags.want) {
    request.add_want(want == "scores" ? v1::SCORES : want == "weights" ? v1::WEIGHTS : v1::VALUES);
  }
  return request;
}

absl::Status WriteFacts(const std::string& path, const v1::AttendResponse& answer) {
  nlohmann::ordered_json facts = {{"request_id", answer.request_id()},
                                  {"model", answer.model()},
                                  {"version", answer.version()}};
  if (answer.has_timing()) {
    facts["queue_us"] = answer.timing().queue_us();
    facts["compute_us"] = answer.timing().compute_us();
    facts["batch_requests"] = answer.timing().batch_requests();
    facts["batch_items"] = answer.timing().batch_items();
  }
  std::ofstream out(path, std::ios::trunc);
  out << facts.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  out.close();
  if (out) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": can't be written"));
}

absl::Status WriteAnswer(const std::string& folder, const v1::AttendResponse& answer) {
  const std::pair<const char*, const v1::Tensor*> tensors[] = {
      {"values", answer.has_values() ? &answer.values() : nullptr},
      {"scores", answer.has_scores() ? &answer.scores() : nullptr},
      {"weights", answer.has_weights() ? &answer.weights() : nullptr}};
  for (const auto& [name, tensor] : tensors) {
    if (tensor == nullptr) continue;
    absl::Status status = WriteTensor(absl::StrCat(folder, "/", name, ".npy"), *tensor);
    if (!status.ok()) return status;
    std::printf("%s/%s.npy  %s\n", folder.c_str(), name, ShapeText(*tensor).c_str());
  }
  return WriteFacts(folder + "/response.json", answer);
}

int Run(const InferFlags& flags) {
  const absl::StatusOr<v1::AttendRequest> request = MakeRequest(flags);
  if (!request.ok()) return Report(request.status());
  std::error_code error;
  std::filesystem::create_directories(flags.out, error);
  if (error) {
    return Report(absl::InvalidArgumentError(
        absl::StrCat("--out: '", flags.out, "' can't be made: ", error.message())));
  }
  const auto client = flags.connection.Connect();
  if (!client.ok()) return Report(client.status());
  const auto answer = (*client)->Attend(*request, flags.connection.ToCallOptions());
  if (!answer.ok()) return Report(answer.status());
  return Report(WriteAnswer(flags.out, *answer));
}

}  // namespace

void AddInfer(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<InferFlags>();
  CLI::App* command = app.add_subcommand("infer", "One sequence from NumPy files");
  command->add_option("--model", flags->model, "the model")
      ->type_name("NAME[@VERSION]")
      ->capture_default_str();
  const auto add_file = [&](const char* name, std::string* path, const char* description) {
    return command->add_option(name, *path, description)->type_name("FILE.npy");
  };
  add_file("--items", &flags->inputs.items, "[N, d_f] float32, float64 or float16")->required();
  add_file("--key-mask", &flags->inputs.key_mask, "[N] bool; true = may be attended to");
  add_file("--attention-mask", &flags->inputs.attention_mask,
           "[N, N] bool; true = item i may attend to item j");
  add_file("--attention-bias", &flags->inputs.attention_bias,
           "[N, N] float, added to the scores; -inf forbids");
  command->add_flag("--causal", flags->causal, "item i may attend to items j <= i alone");
  command->add_option("--want", flags->want, "what to answer: values, scores, weights")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"values", "scores", "weights"}))
      ->type_name("LIST")
      ->capture_default_str();
  command->add_option("--priority", flags->priority, "0 is normal, 1 the highest, then 2, 3 ...")
      ->capture_default_str();
  command->add_option("--request-id", flags->request_id, "echoed in the answer and in the log")
      ->type_name("ID");
  command->add_option("--out", flags->out, "folder of the answer; made if it is not there")
      ->type_name("DIR")
      ->required();
  flags->connection.AddTo(*command);
  NameEnvironmentVariables(*command);
  command->footer(
      "Writes float32 DIR/values.npy [N, d_out], scores.npy and weights.npy [H, N, N] as wanted,\n"
      "and DIR/response.json.\n"
      "Example:\n"
      "  attend infer --model demo@1 --items items.npy --causal --want values,weights --out "
      "answer");
  command->callback([flags, exit_code] { *exit_code = Run(*flags); });
}

}  // namespace attend::client
