#include "server/observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace attend {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

std::string Logged(const LogOptions& options, LogLevel level, const std::string& text) {
  EXPECT_TRUE(ConfigureLog(options).ok());
  ::testing::internal::CaptureStderr();
  Log(level, "request", {{"id", text}, {"items", int64_t{3}}, {"ms", 1.5}});
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, TextIsTimeLevelEventAndFields) {
  EXPECT_THAT(Logged({}, LogLevel::kInfo, "abc"),
              MatchesRegex("20..-..-..T..:..:..[.]......Z info request id=abc items=3 ms=1.5\n"));
}

TEST(Log, AValueCannotForgeAField) {
  EXPECT_THAT(Logged({}, LogLevel::kInfo, "a items=9\n\"x\""),
              HasSubstr(R"(id="a items=9\n\"x\"" items=3)"));
  EXPECT_THAT(Logged({}, LogLevel::kInfo, ""), HasSubstr("id=\"\" "));
}

TEST(Log, JsonIsOneObjectALine) {
  const std::string line = Logged({"info", "json"}, LogLevel::kWarning, "a\"\x01");
  EXPECT_THAT(line, HasSubstr(R"("level":"warning","event":"request","id":"a\"\u0001","items":3)"));
  EXPECT_EQ(line.front(), '{');
  EXPECT_EQ(line.substr(line.size() - 2), "}\n");
  EXPECT_TRUE(ConfigureLog({"info", "json"}).ok());
  ::testing::internal::CaptureStderr();
  Log(LogLevel::kInfo, "x", {{"ratio", NAN}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("\"ratio\":null"));
}

TEST(Log, BelowTheLevelNothingIsWritten) {
  EXPECT_THAT(Logged({}, LogLevel::kDebug, "abc"), IsEmpty());
  EXPECT_FALSE(LogEnabled(LogLevel::kDebug));
  EXPECT_THAT(Logged({"debug", "text"}, LogLevel::kDebug, "abc"), HasSubstr(" debug request"));
}

TEST(Log, AnUnknownLevelOrFormatIsRefused) {
  EXPECT_THAT(ConfigureLog({"loud", "text"}).message(), HasSubstr("\"loud\""));
  EXPECT_THAT(ConfigureLog({"info", "xml"}).message(), HasSubstr("\"xml\""));
}

}  // namespace
}  // namespace attend
