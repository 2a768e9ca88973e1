// A project outside: asks an Attend server for its models through the installed client library.
#include <client/attend_client.h>

#include <cstdio>

int main(int argc, char** argv) {
  const auto client =
      attend::client::AttendClient::Create({.targets = {argc > 1 ? argv[1] : "localhost:8001"}});
  if (!client.ok()) return 2;
  const auto models = (*client)->ListModels({.wait_for_ready = true});
  if (!models.ok()) return 3;
  for (const auto& model : *models) std::printf("%s\n", model.name().c_str());
  return 0;
}
