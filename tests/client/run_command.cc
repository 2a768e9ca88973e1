#include "run_command.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

extern char** environ;

namespace attend::client {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Reads both pipes until both are closed.
void Collect(int out, int err, CommandResult* result) {
  std::array<pollfd, 2> pipes = {{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  std::string* texts[] = {&result->out, &result->err};
  int open = 2;
  while (open > 0 && poll(pipes.data(), pipes.size(), -1) > 0) {
    for (size_t p = 0; p < pipes.size(); ++p) {
      if (pipes[p].fd < 0 || pipes[p].revents == 0) continue;
      char buffer[4096];
      const ssize_t bytes = read(pipes[p].fd, buffer, sizeof(buffer));
      if (bytes > 0) {
        texts[p]->append(buffer, bytes);
      } else {
        close(pipes[p].fd);
        pipes[p].fd = -1;
        --open;
      }
    }
  }
}

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& environment) {
  std::vector<std::string> all = environment;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(all);

  CommandResult result;
  int out[2], err[2];
  if (pipe(out) != 0 || pipe(err) != 0) return result;
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    for (int fd : {out[0], out[1], err[0], err[1]}) close(fd);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  Collect(out[0], err[0], &result);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace attend::client
