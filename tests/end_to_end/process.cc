#include "tests/end_to_end/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

extern char** environ;

namespace attend::testing {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> MergedEnvironment(const Environment& environment) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (environment.count(text.substr(0, text.find('='))) == 0) merged.push_back(text);
  }
  for (const auto& [key, value] : environment) merged.push_back(key + "=" + value);
  return merged;
}

int ExitCode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string LineWith(const std::string& output, const std::string& text) {
  size_t start = 0;
  for (size_t end; (end = output.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string line = output.substr(start, end - start);
    if (line.find(text) != std::string::npos) return line;
  }
  return "";
}

}  // namespace

Process::Process(const Arguments& arguments, const Environment& environment) {
  Arguments argument_copy = arguments;
  std::vector<std::string> environment_copy = MergedEnvironment(environment);
  const std::vector<char*> argv = Pointers(argument_copy);
  const std::vector<char*> envp = Pointers(environment_copy);
  std::array<int, 2> out{}, err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execvpe(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  collector_ = std::thread([this, out = out[0], err = err[0]] { Collect(out, err); });
}

Process::~Process() {
  Signal(SIGKILL);
  Wait();
  collector_.join();
}

void Process::Collect(int out, int err) {
  std::array<pollfd, 2> pipes = {{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  std::array<char, 4096> buffer;
  for (int open = 2; open > 0;) {
    poll(pipes.data(), pipes.size(), -1);
    for (pollfd& pipe : pipes) {
      if (pipe.revents == 0) continue;
      const ssize_t size = read(pipe.fd, buffer.data(), buffer.size());
      if (size > 0) {
        MutexLock lock(&mutex_);
        (pipe.fd == out ? out_ : err_).append(buffer.data(), size);
        changed_.notify_all();
      } else {
        close(pipe.fd);
        pipe.fd = -1;
        --open;
      }
    }
  }
  MutexLock lock(&mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Process::Signal(int signal) {
  MutexLock lock(&mutex_);
  if (!exit_code_) kill(pid_, signal);
}

int Process::Wait() {
  siginfo_t info;
  waitid(P_PID, pid_, &info, WEXITED | WNOWAIT);
  return *WaitFor(std::chrono::milliseconds(0));
}

std::optional<int> Process::WaitFor(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (exit_code_) return exit_code_;
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) return exit_code_ = ExitCode(status);
    }
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::string Process::WaitForLine(const std::string& text) {
  MutexLock lock(&mutex_);
  while (true) {
    if (std::string line = LineWith(out_, text); !line.empty()) return line;
    if (std::string line = LineWith(err_, text); !line.empty()) return line;
    if (closed_) return "";
    changed_.wait(mutex_);
  }
}

std::string Process::out() const {
  MutexLock lock(&mutex_);
  return out_;
}

std::string Process::err() const {
  MutexLock lock(&mutex_);
  return err_;
}

Finished Run(const Arguments& arguments, const Environment& environment) {
  Process process(arguments, environment);
  // No line of a text file holds a NUL, so this waits for the end of the output.
  process.WaitForLine(std::string(1, '\0'));
  return {process.Wait(), process.out(), process.err()};
}

std::string FieldOf(const std::string& line, const std::string& key) {
  const size_t start = line.find(" " + key + "=");
  if (start == std::string::npos) return "";
  const size_t value = start + key.size() + 2;
  return line.substr(value, line.find(' ', value) - value);
}

namespace {

Arguments ServerArguments(const Arguments& flags) {
  Arguments arguments = {ATTEND_BIN_DIR "/attend-server", "--grpc-address=localhost:0",
                         "--metrics-address=localhost:0"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

}  // namespace

ServerProcess::ServerProcess(const Arguments& flags, const Environment& environment)
    : process(ServerArguments(flags), environment) {
  const std::string line = process.WaitForLine("listening");
  grpc_address = FieldOf(line, "grpc");
  metrics_address = FieldOf(line, "metrics");
}

}  // namespace attend::testing
