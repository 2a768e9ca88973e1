// attend explain: how well did item j answer item i's question, with names.
#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "client/command/attention_text.h"
#include "client/command/commands.h"
#include "client/command/exit_code.h"
#include "client/command/flags.h"
#include "client/command/npy_tensors.h"
#include "client/command/words.h"

namespace attend::client {
namespace {

constexpr char kDefaultSentence[] = "The cat sat down because it was tired";

struct ExplainFlags {
  ConnectionFlags connection;
  std::string model = "demo";
  std::vector<std::string> words;
  std::string items;
  bool causal = false;
  bool json = false;
};

struct Question {
  v1::AttendRequest request;
  std::vector<std::string> names;  // [N]
};

absl::StatusOr<Question> Ask(ServerCalls& client, const ExplainFlags& flags) {
  Question question;
  const ModelName model = ParseModelName(flags.model);
  v1::AttendRequest& request = question.request;
  if (!flags.items.empty()) {
    if (absl::Status status = ReadInputs({.items = flags.items}, &request); !status.ok()) {
      return status;
    }
    for (int64_t i = 0; i < request.items().shape(0); ++i) {
      question.names.push_back(absl::StrCat(i));
    }
  } else {
    if (flags.connection.protocol == Protocol::kOip) {
      return absl::InvalidArgumentError(
          "words: the Open Inference Protocol does not tell which items a model names; give "
          "--items FILE.npy, or use --protocol attend");
    }
    const auto info = client.GetModel(model.name, model.version, flags.connection.ToCallOptions());
    if (!info.ok()) return info.status();
    question.names =
        SplitWords(flags.words.empty() ? std::vector<std::string>{kDefaultSentence} : flags.words);
    if (question.names.empty()) return absl::InvalidArgumentError("no words to explain");
    const auto features = WordFeatures(*info, question.names);
    if (!features.ok()) return features.status();
    SetFloats({static_cast<int64_t>(question.names.size()), info->d_f()}, *features,
              request.mutable_items());
  }
  request.set_model(model.name);
  request.set_version(model.version);
  request.set_causal(flags.causal);
  request.add_want(v1::VALUES);
  request.add_want(v1::WEIGHTS);
  return question;
}

// Checks that `answer` holds weights [H, N, N] for N names and cuts them into heads.
absl::StatusOr<std::vector<HeadWeights>> Heads(const v1::AttendResponse& answer, int64_t n) {
  const auto weights = Floats(answer.weights());
  if (!weights.ok()) return weights.status();
  const auto& shape = answer.weights().shape();
  if (shape.size() != 3 || shape[1] != n || shape[2] != n) {
    return absl::InternalError(absl::StrCat("weights of shape ", ShapeText(answer.weights()),
                                            ", expected [H, ", n, ", ", n, "]"));
  }
  std::vector<HeadWeights> heads;
  for (int64_t h = 0; h < shape[0]; ++h) heads.push_back({weights->subspan(h * n * n, n * n), n});
  return heads;
}

void PrintText(const v1::AttendResponse& answer, const std::vector<HeadWeights>& heads,
               const std::vector<std::string>& names) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool colour = isatty(STDOUT_FILENO) && (no_colour == nullptr || *no_colour == '\0');
  std::printf("%s@%s: how well did each item (column) answer each item's (row) question\n",
              answer.model().c_str(), answer.version().c_str());
  for (size_t h = 0; h < heads.size(); ++h) {
    if (heads.size() > 1) std::printf("\nhead %zu", h);
    std::printf("\n%s", WeightsTable(heads[h], names, colour).c_str());
    std::printf("\nthe strongest answer to each:\n%s",
                StrongestText(heads[h], names, colour).c_str());
  }
}

absl::Status PrintJson(const v1::AttendResponse& answer, const std::vector<HeadWeights>& heads,
                       const std::vector<std::string>& names) {
  using nlohmann::ordered_json;
  const auto values = Floats(answer.values());
  if (!values.ok()) return values.status();
  const auto rows = [](std::span<const float> numbers, int64_t n) {
    ordered_json list = ordered_json::array();
    const int64_t columns = static_cast<int64_t>(numbers.size()) / n;
    for (int64_t i = 0; i < n; ++i) list.push_back(numbers.subspan(i * columns, columns));
    return list;
  };
  ordered_json weights = ordered_json::array(), strongest = ordered_json::array();
  for (size_t h = 0; h < heads.size(); ++h) {
    weights.push_back(rows(heads[h].weights, heads[h].n));
    for (const StrongestAnswer& a : StrongestAnswers(heads[h])) {
      if (a.j < 0) continue;
      strongest.push_back({{"head", h}, {"asks", a.i}, {"answers", a.j}, {"weight", a.weight}});
    }
  }
  const ordered_json json = {
      {"model", answer.model()}, {"version", answer.version()},
      {"items", names},          {"weights", weights},
      {"strongest", strongest},  {"values", rows(*values, static_cast<int64_t>(names.size()))}};
  std::puts(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return absl::OkStatus();
}

int Run(const ExplainFlags& flags) {
  const auto client = flags.connection.Connect();
  if (!client.ok()) return Report(client.status());
  const absl::StatusOr<Question> question = Ask(**client, flags);
  if (!question.ok()) return Report(question.status());
  const auto answer = (*client)->Attend(question->request, flags.connection.ToCallOptions());
  if (!answer.ok()) return Report(answer.status());
  const auto heads = Heads(*answer, static_cast<int64_t>(question->names.size()));
  if (!heads.ok()) return Report(heads.status());
  if (flags.json) return Report(PrintJson(*answer, *heads, question->names));
  PrintText(*answer, *heads, question->names);
  return 0;
}

}  // namespace

void AddExplain(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = app.add_subcommand("explain", "Who attends to whom, in words");
  CLI::Option* words =
      command
          ->add_option("words", flags->words,
                       absl::StrCat("a sentence; \"", kDefaultSentence, "\" if there is none"))
          ->type_name("WORDS");
  command->add_option("--model", flags->model, "the model; without --items one that names items")
      ->type_name("NAME[@VERSION]")
      ->capture_default_str();
  command->add_option("--items", flags->items, "[N, d_f] items instead of words")
      ->type_name("FILE.npy")
      ->excludes(words);
  command->add_flag("--causal", flags->causal, "item i may attend to items j <= i alone");
  command->add_flag("--json", flags->json, "print JSON: weights [H][N][N], values [N][d_out]");
  flags->connection.AddTo(*command);
  NameEnvironmentVariables(*command);
  command->footer(
      "Colours on a terminal unless NO_COLOR is set.\n"
      "Examples:\n"
      "  attend explain\n"
      "  attend explain --model demo@1 The cat sat down because it was tired\n"
      "  attend explain --model layer --items items.npy --json");
  command->callback([flags, exit_code] { *exit_code = Run(*flags); });
}

}  // namespace attend::client
