#include "client/command/flags.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/time/time.h>

#include <map>

namespace attend::client {
namespace {

const std::map<std::string, Protocol> kProtocols = {{"attend", Protocol::kAttend},
                                                    {"oip", Protocol::kOip}};

// A finite duration of whole milliseconds, 0 or more.
bool ParseMilliseconds(const std::string& text, std::chrono::milliseconds* value) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration() ||
      duration > absl::Hours(1000)) {
    return false;
  }
  *value = absl::ToChronoMilliseconds(duration);
  return true;
}

// The server has flags of some names too, and `load --json` takes a file where the others' --json
// is a switch: one variable must not mean both.
std::string EnvironmentVariable(const std::string& command, const std::string& flag) {
  std::string name = flag;
  if (flag == "threads" || flag == "max-message-bytes" || flag == "tls-certificate" ||
      flag == "tls-key") {
    name = "client-" + flag;
  } else if (command == "load" && flag == "json") {
    name = "load-json";
  }
  return "ATTEND_" + absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}}));
}

}  // namespace

CLI::Option* AddDuration(CLI::App& app, const std::string& name, std::chrono::milliseconds* value,
                         const std::string& description) {
  return app
      .add_option_function<std::string>(
          name, [value](const std::string& text) { ParseMilliseconds(text, value); }, description)
      ->check([](const std::string& text) {
        std::chrono::milliseconds ignored;
        if (ParseMilliseconds(text, &ignored)) return std::string();
        return absl::StrCat("'", text, "' is no duration, expected such as 500ms, 30s or 2m");
      })
      ->type_name("DURATION")
      ->default_str(absl::FormatDuration(absl::FromChrono(*value)));
}

ModelName ParseModelName(const std::string& text) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

void ConnectionFlags::AddTo(CLI::App& app) {
  constexpr char kGroup[] = "Connection";
  app.add_option("--target", targets, "HOST:PORT of the server; several are balanced")
      ->delimiter(',')
      ->allow_extra_args(false)  // else it would eat the positional arguments after it
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--protocol", protocol, "attend, or oip: the Open Inference Protocol v2")
      ->transform(CLI::CheckedTransformer(kProtocols))
      ->type_name("NAME")
      ->default_str("attend")
      ->group(kGroup);
  AddDuration(app, "--deadline", &deadline, "how long a call may take")->group(kGroup);
  app.add_option("--attempts", attempts, "how often a call that no server took is sent at most")
      ->check(CLI::Range(1, 5))
      ->capture_default_str()
      ->group(kGroup);
  app.add_option("--max-message-bytes", max_message_bytes, "largest request or answer")
      ->check(CLI::Range(int64_t{1}, int64_t{0x7fffffff}))
      ->type_name("BYTES")
      ->capture_default_str()
      ->group(kGroup);
  app.add_flag("--tls", tls, "encrypt; implied by the four below")->group(kGroup);
  const auto add_text = [&](const char* name, std::string* value, const char* description) {
    app.add_option(name, *value, description)->type_name("FILE")->group(kGroup);
  };
  add_text("--tls-ca", &tls_options.ca_file, "who may have signed the server's certificate (PEM)");
  add_text("--tls-certificate", &tls_options.certificate_file, "our certificate, for mutual TLS");
  add_text("--tls-key", &tls_options.key_file, "its key");
  app.add_option("--tls-server-name", tls_options.server_name,
                 "the name in the server's certificate, if it isn't the target's")
      ->type_name("NAME")
      ->group(kGroup);
}

ChannelOptions ConnectionFlags::ToChannelOptions() const {
  ChannelOptions options{.targets = targets, .max_message_bytes = max_message_bytes};
  options.retry.max_attempts = attempts;
  const TlsOptions& t = tls_options;
  if (tls || !t.ca_file.empty() || !t.certificate_file.empty() || !t.key_file.empty() ||
      !t.server_name.empty()) {
    options.tls = t;
  }
  return options;
}

void NameEnvironmentVariables(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty() || option == app.get_help_ptr()) continue;
    const std::string& name = option->get_lnames().front();
    if (name == "version") continue;
    option->envname(EnvironmentVariable(app.get_name(), name));
  }
}

}  // namespace attend::client
