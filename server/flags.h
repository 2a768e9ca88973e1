// The command line of attend-server; every flag is also an ATTEND_* variable.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace attend {

struct Flags {
  std::string model_repository;  // empty: the demo model
  bool allow_partial = false;
  bool allow_model_control = false;
  std::chrono::milliseconds model_poll{5000};
  std::string grpc_address = "localhost:8001";
  std::string metrics_address = "localhost:8002";
  int max_connections = 4096;
  int threads = 0;
  int64_t max_batch_items = 8192;
  int64_t max_batch_requests = 256;
  std::chrono::microseconds max_batch_cost{20000};
  std::chrono::microseconds max_queue_delay{0};
  int64_t max_queued_requests = 4096;
  std::chrono::microseconds max_queued_cost{0};
  int64_t max_queued_bytes = 0;
  int64_t max_incoming_bytes = 0;
  int64_t max_message_bytes = int64_t{256} << 20;
  std::chrono::milliseconds ageing{1000};
  std::chrono::milliseconds drain_delay{5000};
  std::chrono::milliseconds grace_period{30000};
  std::chrono::milliseconds stall_timeout{10000};
  std::string tls_certificate, tls_key, tls_client_ca;
  std::string check_model;  // describe this folder's checkpoint instead of serving
  std::string tensor_prefix;
  std::string log_level = "info";
  std::string log_format = "text";
};

// Nothing, with the exit code in *exit_code, when the process is done: --help and --version print
// to standard output and are 0; a wrong flag is explained on standard error and is 2.
std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code);

}  // namespace attend
