// The smallest HTTP client that a scrape needs.
#pragma once

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace attend::testing {

// The whole response, head and body, of GET `path` at "host:port"; empty when nothing answers.
inline std::string HttpGet(const std::string& address, const std::string& path) {
  const size_t colon = address.rfind(':');
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints,
                  &found) != 0) {
    return "";
  }
  const int connection = socket(found->ai_family, found->ai_socktype, 0);
  const bool connected = connect(connection, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  std::string response;
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (connected && write(connection, request.data(), request.size()) > 0) {
    char buffer[4096];
    for (ssize_t size; (size = read(connection, buffer, sizeof(buffer))) > 0;) {
      response.append(buffer, size);
    }
  }
  close(connection);
  return response;
}

}  // namespace attend::testing
