// Where gRPC is reached: the listening sockets, and how many connections may come through them.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace attend {

// Accepts by itself, since gRPC's own listener stops for good the first time that the process has
// no file descriptor left for a connection.
class Listener {
 public:
  // Takes over the connection `fd`, which came in by `listening_fd`.
  using Take = std::function<void(int listening_fd, int fd)>;

  // `address` is HOST:PORT: each address that HOST stands for, or all of the machine for "0.0.0.0",
  // "[::]" or "". A connection that would be beyond `max_connections`, or take one of the last file
  // descriptors, is closed at once. UNAVAILABLE naming the address and the system's reason.
  static absl::StatusOr<std::unique_ptr<Listener>> Bind(const std::string& address,
                                                        int max_connections);
  // Closes the sockets; what was taken stays open.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Begins to accept, on a thread of its own. Once.
  void Start(Take take);

  // With the real port.
  const std::string& address() const { return address_; }
  // Connections closed at once. Thread-safe.
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  Listener(std::vector<int> sockets, std::string address, int max_connections);
  void Run();
  void Accept(int socket);
  int LowestRefusedDescriptor() const;

  const std::vector<int> sockets_;
  const std::string address_;
  const int max_connections_;
  const int stop_;  // an eventfd
  std::atomic<int64_t> refused_{0};
  Take take_;
  std::thread thread_;
};

}  // namespace attend
