#include "server/rpc/listener.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace attend {
namespace {

// For metrics, models and the log, whatever callers do.
constexpr int kReservedFiles = 64;
constexpr std::chrono::milliseconds kShortOfFiles{10};

struct Place {
  std::string host, port;
  bool everywhere() const { return host.empty() || host == "0.0.0.0" || host == "::"; }
};

Place ParsePlace(absl::string_view address) {
  const size_t colon = std::min(address.rfind(':'), address.size());
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return {std::string(host), std::string(absl::StripPrefix(address.substr(colon), ":"))};
}

absl::Status CanNot(absl::string_view address, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("can't listen on ", address, ": ", why, "; expected HOST:PORT of this machine"));
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::StatusOr<Addresses> Resolve(const std::string& address, const Place& place) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  // One socket that takes both families, where the machine has both.
  const char* host = place.everywhere() ? "::" : place.host.c_str();
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host, place.port.c_str(), &hints, &found);
  if (error != 0) return CanNot(address, gai_strerror(error));
  return Addresses(found, freeaddrinfo);
}

void SetPort(sockaddr_storage* address, uint16_t port) {
  (address->ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                  : reinterpret_cast<sockaddr_in*>(address)->sin_port) = port;
}

uint16_t PortOf(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  return bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                     : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
}

void Allow(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

// A listening socket, or -1 with errno. Connections inherit its options.
int Listen(const sockaddr_storage& address, socklen_t size, bool everywhere) {
  const int made = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  Allow(made, SOL_SOCKET, SO_REUSEADDR, 1);
  Allow(made, IPPROTO_TCP, TCP_NODELAY, 1);
  if (address.ss_family == AF_INET6) Allow(made, IPPROTO_IPV6, IPV6_V6ONLY, everywhere ? 0 : 1);
  if (bind(made, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
      listen(made, SOMAXCONN) == 0) {
    return made;
  }
  const int error = errno;
  close(made);
  errno = error;
  return -1;
}

int ListenEverywhereByIpv4(uint16_t port) {
  sockaddr_storage any{};
  any.ss_family = AF_INET;
  SetPort(&any, port);
  return Listen(any, sizeof(sockaddr_in), true);
}

// One socket for each address that the machine has, all on one port.
absl::StatusOr<std::vector<int>> ListenOn(const std::string& address, const Place& place) {
  auto addresses = Resolve(address, place);
  if (!addresses.ok()) return addresses.status();
  std::vector<int> sockets;
  int error = 0;
  for (const addrinfo* one = addresses->get(); one != nullptr; one = one->ai_next) {
    sockaddr_storage wanted{};
    std::memcpy(&wanted, one->ai_addr, one->ai_addrlen);
    if (!sockets.empty()) SetPort(&wanted, PortOf(sockets[0]));
    int socket = Listen(wanted, one->ai_addrlen, place.everywhere());
    if (socket < 0 && place.everywhere() && errno != EADDRINUSE) {
      socket = ListenEverywhereByIpv4(reinterpret_cast<sockaddr_in6*>(&wanted)->sin6_port);
    }
    socket < 0 ? error = errno : (sockets.push_back(socket), 0);
    if (error == EADDRINUSE) break;
  }
  if (!sockets.empty() && error != EADDRINUSE) return sockets;
  for (const int socket : sockets) close(socket);
  return CanNot(address, std::strerror(error));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Bind(const std::string& address,
                                                         int max_connections) {
  const Place place = ParsePlace(address);
  uint32_t port = 0;
  if (!absl::SimpleAtoi(place.port, &port) || port > 0xffff) {
    return CanNot(address, "it has no port from 0 to 65535");
  }
  auto sockets = ListenOn(address, place);
  if (!sockets.ok()) return sockets.status();
  const std::string bound = absl::StrCat(absl::string_view(address).substr(0, address.rfind(':')),
                                         ":", ntohs(PortOf(sockets->at(0))));
  return std::unique_ptr<Listener>(new Listener(*std::move(sockets), bound, max_connections));
}

Listener::Listener(std::vector<int> sockets, std::string address, int max_connections)
    : sockets_(std::move(sockets)),
      address_(std::move(address)),
      max_connections_(max_connections),
      stop_(eventfd(0, EFD_CLOEXEC)) {}

Listener::~Listener() {
  if (thread_.joinable()) {
    eventfd_write(stop_, 1);
    thread_.join();
  }
  for (const int socket : sockets_) close(socket);
  close(stop_);
}

void Listener::Start(Take take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { Run(); });
}

void Listener::Run() {
  std::vector<pollfd> watched = {{stop_, POLLIN, 0}};
  for (const int socket : sockets_) watched.push_back({socket, POLLIN, 0});
  while (true) {
    poll(watched.data(), watched.size(), -1);
    if (watched[0].revents != 0) return;
    for (size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) Accept(watched[i].fd);
    }
  }
}

void Listener::Accept(int socket) {
  const int fd = accept4(socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    const bool gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    if (!gone) poll(nullptr, 0, kShortOfFiles.count());
    return;
  }
  if (fd < LowestRefusedDescriptor()) {
    take_(socket, fd);
    return;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  close(fd);
}

// The system gives the lowest free number, so the number says how many are in use.
int Listener::LowestRefusedDescriptor() const {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int64_t files = std::min<rlim_t>(limit.rlim_cur, 1 << 30);
  const int64_t shared = files - std::min<int64_t>(kReservedFiles, files / 4);
  return static_cast<int>(std::min<int64_t>(shared, int64_t{stop_} + 1 + max_connections_));
}

}  // namespace attend
