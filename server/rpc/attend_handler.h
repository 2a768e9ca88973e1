// attend.v1.Attention: what its calls do.
#pragma once

#include "server/rpc/exchange.h"
#include "server/rpc/serving.h"

namespace attend {

// Attend, and each message of AttendStream.
void HandleAttend(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleListModels(const Serving& serving, std::shared_ptr<Exchange> exchange);
void HandleGetModel(const Serving& serving, std::shared_ptr<Exchange> exchange);

}  // namespace attend
