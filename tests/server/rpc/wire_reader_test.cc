#include "server/rpc/wire_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/rpc/utf8.h"
#include "tests/server/rpc/pieces.h"

namespace attend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ByteRangeTest : public ::testing::Test {
 protected:
  Pieces Cut(const std::string& bytes) { return Pieces(bytes, random_); }
  std::mt19937 random_{1};
};

TEST_F(ByteRangeTest, ReadsAcrossPieces) {
  const std::string text = "what lies in several pieces is read as one";
  for (int repeat = 0; repeat < 100; ++repeat) {
    const Pieces pieces = Cut(text);
    ByteRange range = pieces.range(), front;
    ASSERT_TRUE(range.Split(10, &front));
    std::string a(10, ' '), b(text.size() - 10, ' ');
    ASSERT_TRUE(front.Read(a.data(), a.size()));
    ASSERT_TRUE(range.Read(b.data(), b.size()));
    EXPECT_EQ(a + b, text);
    EXPECT_TRUE(range.empty() && front.empty());
    EXPECT_FALSE(range.Skip(1));
    EXPECT_TRUE(front.front().empty());
  }
}

TEST_F(ByteRangeTest, TakesNothingWhenTooLittleIsLeft) {
  const Pieces pieces = Cut("abc");
  ByteRange range = pieces.range(), front;
  char four[4];
  EXPECT_FALSE(range.Read(four, 4));
  EXPECT_FALSE(range.Skip(4));
  EXPECT_FALSE(range.Split(UINT64_MAX, &front));
  EXPECT_EQ(range.size(), 3u);
}

TEST_F(ByteRangeTest, IntegersOfUpToTenBytes) {
  uint64_t value = 0;
  const Pieces largest = Cut(std::string(9, '\xff') + "\x01");
  ByteRange range = largest.range();
  EXPECT_TRUE(range.ReadVarint(&value));
  EXPECT_EQ(value, UINT64_MAX);
  const Pieces endless = Cut(std::string(11, '\xff'));
  range = endless.range();
  EXPECT_FALSE(range.ReadVarint(&value));
  const Pieces cut = Cut("\x80");
  range = cut.range();
  EXPECT_FALSE(range.ReadVarint(&value));
}

std::string ErrorOf(const std::string& bytes) {
  std::mt19937 random(1);
  const Pieces pieces(bytes, random);
  WireReader reader(pieces.range(), "Question");
  WireField field;
  while (reader.Next(&field)) {
  }
  return std::string(reader.status().message());
}

TEST(WireReader, BrokenMessagesSayWhatIsWrong) {
  EXPECT_EQ(ErrorOf(""), "");
  EXPECT_THAT(ErrorOf("\x80"), HasSubstr("Question: not a valid protobuf message: a field's tag"));
  EXPECT_THAT(ErrorOf(std::string("\x00\x01", 2)), HasSubstr("tag is broken"));
  EXPECT_THAT(ErrorOf("\x08"), HasSubstr("an integer is cut short"));
  EXPECT_THAT(ErrorOf("\x0a\x05xy"), HasSubstr("field 1 is cut short"));
  EXPECT_THAT(ErrorOf("\x0d\x01"), HasSubstr("32 bit"));
  EXPECT_THAT(ErrorOf("\x09\x01"), HasSubstr("64 bit"));
  EXPECT_THAT(ErrorOf("\x0b"), HasSubstr("field 1 has an unknown wire type"));
}

WireField FieldWith(WireType type, uint64_t varint, ByteRange bytes = {}) {
  WireField field;
  field.type = type;
  field.varint = varint;
  field.bytes = bytes;
  return field;
}

TEST(ReadIntegers, PackedAndUnpackedAreOneList) {
  std::mt19937 random(1);
  const Pieces packed("\x02\x80\x01", random);
  std::vector<int64_t> numbers;
  EXPECT_TRUE(ReadIntegers(FieldWith(WireType::kVarint, 7), "shape", 8, &numbers).ok());
  EXPECT_TRUE(
      ReadIntegers(FieldWith(WireType::kBytes, 0, packed.range()), "shape", 8, &numbers).ok());
  EXPECT_THAT(numbers, ElementsAre(7, 2, 128));
  EXPECT_THAT(ReadIntegers(FieldWith(WireType::kVarint, 7), "shape", 3, &numbers).message(),
              HasSubstr("shape: more than 3 numbers"));
  EXPECT_FALSE(ReadIntegers(FieldWith(WireType::kFixed32, 7), "shape", 8, &numbers).ok());
}

TEST(Utf8, AcceptsWhatUnicodeDoesAndNothingElse) {
  for (const char* good : {"", "abc", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x80\x80", "\xed\xa0\x80",
        "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe1\x80"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace attend
