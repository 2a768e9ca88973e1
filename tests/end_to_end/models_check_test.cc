// attend models check: what a folder with a checkpoint holds, without a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/end_to_end/process.h"

namespace attend::testing {
namespace {

using ::testing::HasSubstr;

Finished Check(Arguments arguments) {
  arguments.insert(arguments.begin(), {ATTEND_BIN_DIR "/attend", "models", "check"});
  return Run(arguments);
}

TEST(ModelsCheck, NamesTheLayerAndGivesAReadyConfiguration) {
  const Finished result = Check({ATTEND_ORACLE_DIR "/bert_layout_in_a_checkpoint"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("encoder.layer.3.attention."));
  EXPECT_THAT(result.out, HasSubstr("\"tensor_prefix\""));
}

TEST(ModelsCheck, ALayerThatIsNotThereIsTheCallersError) {
  const Finished result = Check({ATTEND_ORACLE_DIR "/bert_layout_in_a_checkpoint",
                                 "--tensor-prefix", "encoder.layer.9.attention."});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("encoder.layer.9.attention."));
}

TEST(ModelsCheck, AFolderThatIsNotThereIsTheCallersError) {
  const Finished result = Check({"/nonexistent/folder"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("/nonexistent/folder"));
}

}  // namespace
}  // namespace attend::testing
