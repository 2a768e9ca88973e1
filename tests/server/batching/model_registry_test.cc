#include "server/batching/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/batching/fakes.h"

namespace attend {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Registry : public ::testing::Test {
 protected:
  Registry() {
    registry_.Put(ServeFake("a", 2).model);
    registry_.Put(ServeFake("a", 10).model);
    registry_.Put(ServeFake("b", 1).model);
  }
  std::string MessageOf(absl::string_view name, absl::string_view version) const {
    return std::string(registry_.Find(name, version).status().message());
  }
  ModelRegistry registry_;
};

TEST_F(Registry, WithoutAVersionTheHighestIsFound) {
  EXPECT_EQ((*registry_.Find("a", ""))->version, 10);
  EXPECT_EQ((*registry_.Find("a", "2"))->version, 2);
}

TEST_F(Registry, SaysWhatIsServedInPlaceOfWhatIsNot) {
  EXPECT_EQ(registry_.Find("c", "").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf("c", ""), AllOf(HasSubstr("\"c\""), HasSubstr("a, b")));
  EXPECT_EQ(registry_.Find("a", "3").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf("a", "3"), HasSubstr("2, 10"));
}

TEST_F(Registry, AVersionIsAPositiveInteger) {
  for (const char* version : {"0", "-1", "latest", "1.0", "99999999999999999999"}) {
    EXPECT_EQ(registry_.Find("a", version).status().code(), absl::StatusCode::kInvalidArgument)
        << version;
  }
}

TEST_F(Registry, RemovingTheHighestMakesTheNextOneTheDefault) {
  EXPECT_TRUE(registry_.Remove("a", 10).ok());
  EXPECT_EQ((*registry_.Find("a", ""))->version, 2);
  EXPECT_EQ(registry_.Remove("a", 10).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(registry_.Remove("a", 2).ok());
  EXPECT_EQ(registry_.Find("a", "").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Registry, PuttingAVersionAgainReplacesItAndLeavesTheOldOneToWhoHoldsIt) {
  const auto old = *registry_.Find("b", "1");
  registry_.Put(ServeFake("b", 1).model);
  EXPECT_NE(*registry_.Find("b", "1"), old);
  EXPECT_EQ(old->name, "b");
}

TEST_F(Registry, ListsByNameThenVersion) {
  std::string list;
  for (const auto& model : registry_.List()) {
    list += model->name + "@" + std::to_string(model->version) + " ";
  }
  EXPECT_EQ(list, "a@2 a@10 b@1 ");
}

}  // namespace
}  // namespace attend
