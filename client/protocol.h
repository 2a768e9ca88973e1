// The two protocols that a server speaks on one port.
#pragma once

namespace attend::client {

enum class Protocol {
  kAttend,  // attend.v1
  kOip,     // the Open Inference Protocol v2: docs/protocols.md
};

}  // namespace attend::client
