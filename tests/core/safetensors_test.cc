#include "core/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/float_convert.h"
#include "tests/core/model_files.h"

namespace attend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape +
         "],\"data_offsets\":[" + offsets + "]}";
}

std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

// The message that a file with this header is refused with, or "" when it is read.
std::string RefusalOf(const std::string& header, uint64_t data_size) {
  return std::string(ParseSafetensorsHeader(header, data_size).status().message());
}

const std::string kA = Entry("a", "F32", "1", "0,4");

// Every row was tried on the format's reference reader, safetensors 0.8.0 for Python. It read the
// files with refusal "" and refused the others, unless the row says that we differ.
struct Row {
  const char* what;
  std::string header;
  uint64_t data_size;
  std::string refusal = "";
};

const Row kRows[] = {
    {"one tensor", "{" + kA + "}", 4},
    {"no tensor", "{}", 0},
    {"metadata only", R"({"__metadata__":{"a":"b"}})", 0},
    {"spaces before and after", " \n{" + kA + "}\t\r\n ", 4},
    {"scalar", "{" + Entry("a", "F32", "", "0,4") + "}", 4},
    {"zero-sized", "{" + Entry("a", "F32", "0,3", "0,0") + "}", 0},
    {"zero-sized between others",
     "{" + kA + "," + Entry("b", "F32", "0", "4,4") + "," + Entry("c", "F32", "1", "4,8") + "}", 8},
    {"zero-sized at the same place",
     "{" + Entry("a", "F32", "0", "0,0") + "," + Entry("b", "F32", "0", "0,0") + "}", 0},
    {"zero-sized inside another", "{" + kA + "," + Entry("b", "F32", "0", "2,2") + "}", 4,
     R"(tensor "b": data_offsets [2, 2] overlap: the tensor before ends at 4)"},
    {"unaligned", "{" + Entry("a", "U8", "1", "0,1") + "," + Entry("b", "F32", "1", "1,5") + "}",
     5},
    {"in any order", "{" + Entry("b", "F32", "1", "4,8") + "," + kA + "}", 8},
    {"33 dimensions",
     "{" +
         Entry("a", "F32",
               "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
               "1,1,1,1,1,1,1",
               "0,4") +
         "}",
     4},
    {"empty name", "{" + Entry("", "F32", "1", "0,4") + "}", 4},
    {"escaped name", "{" + Entry("a\\u0000b", "F32", "1", "0,4") + "}", 4},
    {"another key beside the three",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4},
    {"that key twice",
     R"({"a":{"x":[{}],"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":null}})", 4},
    {"a tensor twice, alike: the last counts", "{" + kA + "," + kA + "}", 4},
    {"a tensor twice, not alike: the last counts",
     "{" + kA + "," + Entry("a", "F32", "2", "0,8") + "}", 8},
    {"a tensor twice, the last leaving a gap", "{" + kA + "," + Entry("a", "F32", "1", "4,8") + "}",
     8, R"(tensor "a": data_offsets [4, 8] leave a gap: the tensor before ends at 0)"},
    {"metadata null", R"({"__metadata__":null})", 0},
    {"metadata with a key twice", R"({"__metadata__":{"a":"b","a":"c"}})", 0},
    {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "comes twice"},
    {"metadata of numbers", R"({"__metadata__":{"a":1}})", 0,
     R"(tensor "__metadata__": holds a number, expected strings alone)"},
    {"metadata of null", R"({"__metadata__":{"a":null}})", 0, "expected strings alone"},
    {"metadata of objects", R"({"__metadata__":{"a":{}}})", 0, "expected strings alone"},
    {"metadata an array", R"({"__metadata__":[]})", 0, "is an array, expected an object"},
    {"metadata a string", R"({"__metadata__":"x"})", 0, "is a string, expected an object"},
    {"nested 127 deep",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":)" + Nested(125) + "}}", 4},
    {"nested 128 deep",
     R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":)" + Nested(126) + "}}", 4,
     "nested deeper than 127"},

    {"empty", "", 0, "the header is no JSON at its byte"},
    {"an array", "[]", 0, "the header is an array, expected a JSON object"},
    {"null", "null", 0, "the header is null, expected a JSON object"},
    {"cut short", "{" + kA, 4, "the header is no JSON at its byte 54"},
    {"junk after it", "{" + kA + "}x", 4, "the header is no JSON at its byte"},
    {"NUL after it", "{" + kA + "}" + std::string(2, '\0'), 4, "a NUL or a byte order mark"},
    {"a byte order mark", "\xEF\xBB\xBF{" + kA + "}", 4, "a NUL or a byte order mark"},
    {"a comment", "{/**/" + kA + "}", 4, "the header is no JSON at its byte 2"},
    {"a comma too many", "{" + kA + ",}", 4, "the header is no JSON at its byte"},
    {"bad UTF-8", "{" + Entry("\xFF", "F32", "1", "0,4") + "}", 4, "ill-formed UTF-8"},
    {"overlong UTF-8", "{" + Entry("\xC0\x80", "F32", "1", "0,4") + "}", 4, "ill-formed UTF-8"},
    {"half a surrogate pair", "{" + Entry("\\ud800", "F32", "1", "0,4") + "}", 4, "surrogate"},
    {"a control character", "{" + Entry("a\tb", "F32", "1", "0,4") + "}", 4, "control character"},
    {"a number out of range", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1e999}})",
     4, "number"},
    {"null for a tensor", R"({"a":null})", 0, R"(tensor "a": is null, expected an object)"},
    {"no dtype", R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, R"("a": dtype is missing)"},
    {"no shape", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, R"("a": shape is missing)"},
    {"no offsets", R"({"a":{"dtype":"F32","shape":[1]}})", 4, R"("a": data_offsets is missing)"},
    {"dtype twice", R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
     "dtype comes twice"},
    {"shape twice", R"({"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4,
     "shape comes twice"},
    {"unknown dtype", "{" + Entry("a", "F33", "1", "0,4") + "}", 4, R"(unknown dtype "F33")"},
    {"dtype in small letters", "{" + Entry("a", "f32", "1", "0,4") + "}", 4, R"(dtype "f32")"},
    {"dtype a number", R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4,
     "dtype is a number"},
    {"half an extent", "{" + Entry("a", "F32", "1.0", "0,4") + "}", 4, "shape holds 1.0"},
    {"a negative extent", "{" + Entry("a", "F32", "-1", "0,4") + "}", 4, "a negative number"},
    {"minus zero", "{" + Entry("a", "F32", "-0", "0,0") + "}", 0, "a negative number"},
    {"an extent as text", "{" + Entry("a", "F32", "\"1\"", "0,4") + "}", 4, "shape holds a string"},
    {"an extent of 2^64", "{" + Entry("a", "F32", "18446744073709551616", "0,4") + "}", 4,
     "shape holds 18446744073709551616, expected numbers from 0 to 2^64-1"},
    {"a shape of null", R"({"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}})", 4,
     "shape is null"},
    {"elements overflow", "{" + Entry("a", "F32", "4294967296,4294967296", "0,4") + "}", 4,
     "overflows 64 bits"},
    {"elements overflow before a zero",
     "{" + Entry("a", "F32", "4294967296,4294967296,0", "0,0") + "}", 0, "overflows 64 bits"},
    {"no overflow after a zero", "{" + Entry("a", "F32", "0,4294967296,4294967296", "0,0") + "}",
     0},
    {"bytes overflow", "{" + Entry("a", "F32", "4611686018427387904", "0,0") + "}", 0,
     "overflows 64 bits"},
    {"offsets overflow", "{" + Entry("a", "F32", "1", "0,18446744073709551615") + "}", 4,
     "hold 18446744073709551615 bytes"},
    {"half a byte", "{" + Entry("a", "F4", "3", "0,2") + "}", 2, "doesn't end at a whole byte"},
    {"negative offsets", "{" + Entry("a", "F32", "1", "-4,0") + "}", 4, "a negative number"},
    {"one offset", "{" + Entry("a", "F32", "1", "0") + "}", 4, "must be two numbers"},
    {"three offsets", "{" + Entry("a", "F32", "1", "0,4,4") + "}", 4, "must be two numbers"},
    {"backward offsets", "{" + Entry("a", "F32", "1", "4,0") + "}", 4, "run backwards"},
    {"a gap", "{" + kA + "," + Entry("b", "F32", "1", "8,12") + "}", 12,
     R"(tensor "b": data_offsets [8, 12] leave a gap: the tensor before ends at 4)"},
    {"a gap at the start", "{" + Entry("b", "F32", "1", "4,8") + "}", 8, "leave a gap"},
    {"an overlap", "{" + kA + "," + Entry("b", "F32", "1", "2,6") + "}", 6,
     R"(tensor "b": data_offsets [2, 6] overlap: the tensor before ends at 4)"},
    {"the same place", "{" + kA + "," + Entry("b", "F32", "1", "0,4") + "}", 4, "overlap"},
    {"another size", "{" + Entry("a", "F32", "2", "0,4") + "}", 4,
     "hold 4 bytes, but F32 [2] takes 8"},
    {"too few bytes", "{" + kA + "}", 3, "take 4 bytes, but 3 follow it: the file was cut short"},
    {"too many bytes", "{" + kA + "}", 5,
     "take 4 bytes, but 5 follow it: the file has bytes that belong to no tensor"},

    {"a tensor as an array; the reference reads it", R"({"a":["F32",[1],[0,4]]})", 4,
     "is an array, expected an object"},
    {"dtype as an object; the reference reads it",
     R"({"a":{"dtype":{"F32":null},"shape":[1],"data_offsets":[0,4]}})", 4, "dtype is an object"},
};

TEST(Safetensors, EveryHeaderIsReadOrRefusedAsTheReferenceReaderDoes) {
  for (const Row& row : kRows) {
    const std::string refusal = RefusalOf(row.header, row.data_size);
    if (row.refusal.empty()) {
      EXPECT_EQ(refusal, "") << row.what;
    } else {
      EXPECT_THAT(refusal, HasSubstr(row.refusal)) << row.what;
    }
  }
}

TEST(Safetensors, EveryDtypeOfTheFormatIsMeasured) {
  const struct {
    const char* dtype;
    uint64_t bytes_of_four;
  } dtypes[] = {{"BOOL", 4},    {"U8", 4},      {"I8", 4},          {"F8_E5M2", 4},
                {"F8_E4M3", 4}, {"F8_E8M0", 4}, {"F8_E4M3FNUZ", 4}, {"F8_E5M2FNUZ", 4},
                {"I16", 8},     {"U16", 8},     {"F16", 8},         {"BF16", 8},
                {"I32", 16},    {"U32", 16},    {"F32", 16},        {"C64", 32},
                {"F64", 32},    {"I64", 32},    {"U64", 32},        {"F4", 2},
                {"F6_E2M3", 3}, {"F6_E3M2", 3}};
  for (const auto& [dtype, bytes] : dtypes) {
    const std::string header = "{" + Entry("a", dtype, "4", "0," + std::to_string(bytes)) + "}";
    EXPECT_EQ(RefusalOf(header, bytes), "") << dtype;
  }
}

TEST(Safetensors, MessagesStayShortWhateverTheHeaderHolds) {
  const std::string name(100'000, 'x');
  std::string shape = "2";
  for (int i = 0; i < 50'000; ++i) shape += ",1";
  const std::string headers[] = {"{" + Entry(name, "F32", shape, "0,4") + "}",
                                 "{" + Entry("a", name, "1", "0,4") + "}", "{\"" + name};
  for (const std::string& header : headers) {
    const std::string refusal = RefusalOf(header, 4);
    EXPECT_NE(refusal, "");
    EXPECT_LT(refusal.size(), 600u);
  }
}

TEST(Safetensors, TheLastOfTwoEntriesCounts) {
  const auto tensors =
      ParseSafetensorsHeader("{" + kA + "," + Entry("a", "F32", "2", "0,8") + "}", 8);
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(tensors->at("a").shape, ElementsAre(2));
}

absl::Status OpenStatus(const std::string& bytes) {
  TempDirectory directory;
  return SafetensorsFile::Open(directory.Write("model.safetensors", bytes)).status();
}

std::string LengthOnly(uint64_t length) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length);
}

TEST(SafetensorsFile, FilesThatEndTooSoonAreRefused) {
  EXPECT_EQ(OpenStatus("").message(),
            "model.safetensors: holds 0 bytes; safetensors begins with 8 for the header's length");
  EXPECT_THAT(std::string(OpenStatus(std::string(7, '\0')).message()), HasSubstr("holds 7 bytes"));
  EXPECT_THAT(std::string(OpenStatus(LengthOnly(100) + "{}").message()),
              HasSubstr("say that the header has 100 bytes, but only 2 follow"));
  const std::string whole = Safetensors({{"query.weight", {2, 2}}});
  EXPECT_THAT(std::string(OpenStatus(whole.substr(0, whole.size() - 1)).message()),
              HasSubstr("was cut short"));
}

TEST(SafetensorsFile, AHeaderOf100MillionBytesIsReadAndOneMoreIsRefused) {
  const auto padded = [](size_t size) {
    std::string header = "{" + kA + "}";
    header.resize(size, ' ');
    return SafetensorsOf(header, std::string(4, '\0'));
  };
  EXPECT_TRUE(OpenStatus(padded(100'000'000)).ok());
  EXPECT_THAT(std::string(OpenStatus(padded(100'000'001)).message()),
              HasSubstr("header has 100000001 bytes; the format allows 100000000"));
  EXPECT_THAT(std::string(OpenStatus(LengthOnly(~uint64_t{0})).message()),
              HasSubstr("header has 18446744073709551615 bytes"));
}

TEST(SafetensorsFile, WhatIsNoFileIsRefused) {
  TempDirectory directory;
  const absl::Status missing = SafetensorsFile::Open(directory.path() + "/x").status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_EQ(missing.message(), "x: there is no such file");
  std::filesystem::create_directory(directory.path() + "/folder");
  EXPECT_THAT(std::string(SafetensorsFile::Open(directory.path() + "/folder").status().message()),
              HasSubstr("is no regular file"));
}

TEST(SafetensorsFile, AFileCutShortAfterItWasOpenedIsAnError) {
  TempDirectory directory;
  const std::string path =
      directory.Write("model.safetensors", Safetensors({{"query.weight", {100, 100}}}));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::filesystem::resize_file(path, 1000);
  const absl::Status read = file->ReadFloats("query.weight").status();
  EXPECT_TRUE(absl::IsInvalidArgument(read));
  EXPECT_THAT(std::string(read.message()), HasSubstr("was cut short while it was read"));
}

// The floats of a tensor of `dtype`, or why they can't be had.
absl::StatusOr<std::vector<float>> ReadAs(const std::string& dtype, std::vector<int64_t> shape,
                                          const std::string& bytes) {
  TempDirectory directory;
  const auto file = SafetensorsFile::Open(
      directory.Write("m.safetensors", Safetensors({{"t", std::move(shape), dtype, bytes}})));
  if (!file.ok()) return file.status();
  const auto floats = file->ReadFloats("t");
  if (!floats.ok()) return floats.status();
  return std::vector<float>(floats->span().begin(), floats->span().end());
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

TEST(SafetensorsFile, FloatsOfEveryDtypeAreRead) {
  EXPECT_THAT(*ReadAs("F32", {2}, BytesOf<float>({1.5f, -0x1p-149f})),
              ElementsAre(1.5f, -0x1p-149f));
  EXPECT_THAT(*ReadAs("F64", {3}, BytesOf<double>({1.0 / 3, -2, 1e-300})),
              ElementsAre(1.0f / 3, -2.0f, 0.0f));
  EXPECT_THAT(*ReadAs("F16", {4}, BytesOf<uint16_t>({0x3c00, 0xc000, 0x7bff, 0x0001})),
              ElementsAre(1.0f, -2.0f, 65504.0f, 0x1p-24f));
  EXPECT_THAT(*ReadAs("BF16", {2}, BytesOf<uint16_t>({0x3f80, 0xc040})), ElementsAre(1.0f, -3.0f));
  EXPECT_THAT(*ReadAs("F32", {}, BytesOf<float>({7})), ElementsAre(7.0f));
}

TEST(SafetensorsFile, NumbersThatAreNotFiniteAreRefusedWithTheirPlace) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ReadAs("F32", {2, 3}, BytesOf<float>({0, 0, 0, 0, nan, infinity})).status().message(),
            "m.safetensors: tensor \"t\" F32 [2, 3]: element [1, 1] is nan, expected a number that "
            "is finite as float32");
  EXPECT_THAT(std::string(ReadAs("F16", {2}, BytesOf<uint16_t>({0, 0xfc00})).status().message()),
              HasSubstr("element [1] is -inf"));
  EXPECT_THAT(std::string(ReadAs("BF16", {1}, BytesOf<uint16_t>({0x7f80})).status().message()),
              HasSubstr("element [0] is inf"));
  EXPECT_THAT(std::string(ReadAs("F64", {2}, BytesOf<double>({0, 1e300})).status().message()),
              HasSubstr("element [1] is 1e+300"));
}

TEST(SafetensorsFile, NumbersThatAreNoFloatsAreRefused) {
  EXPECT_EQ(ReadAs("I64", {1}, std::string(8, '\0')).status().message(),
            "m.safetensors: tensor \"t\" I64 [1]: expected dtype F32, F16, BF16 or F64");
}

TEST(FloatConvert, EveryF16IsConvertedExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = (bits >> 10) & 31;
    const double fraction = bits & 0x3ff;
    double expected = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
    if (bits & 0x8000) expected = -expected;
    const auto stored = static_cast<uint16_t>(bits);
    float converted = 0;
    ConvertToFloat32(FloatType::kF16, std::as_bytes(std::span(&stored, 1)),
                     std::span(&converted, 1));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(converted)) << bits;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(converted),
                std::bit_cast<uint32_t>(static_cast<float>(expected)))
          << bits;
    }
  }
}

}  // namespace
}  // namespace attend
