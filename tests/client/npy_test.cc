#include "client/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace attend::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TestPath(const std::string& name) {
  return (std::filesystem::path(::testing::TempDir()) / ("npy_test_" + name)).string();
}

// A version 1.0 file with `header` as it is.
std::string FileOf(const std::string& header, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

std::string HeaderOf(const std::string& descr, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

absl::StatusOr<NpyArray> ReadBytes(const std::string& bytes) {
  const std::string path = TestPath(
      ::testing::UnitTest::GetInstance()->current_test_info()->name() + std::string(".npy"));
  std::ofstream(path, std::ios::binary) << bytes;
  absl::StatusOr<NpyArray> array = ReadNpy(path);
  std::filesystem::remove(path);
  return array;
}

void ExpectRefused(const std::string& bytes, const std::string& reason) {
  const absl::StatusOr<NpyArray> array = ReadBytes(bytes);
  ASSERT_FALSE(array.ok());
  EXPECT_EQ(array.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(array.status().message()), HasSubstr(reason));
  EXPECT_THAT(std::string(array.status().message()), HasSubstr(".npy"));
}

TEST(Npy, WhatIsWrittenIsReadAgain) {
  const std::string path = TestPath("round_trip.npy");
  const std::vector<float> values = {0.f, -1.5f, 1e-40f, INFINITY, 3e38f, -0.f};
  ASSERT_TRUE(WriteNpy(path, std::vector<int64_t>{2, 1, 3}, values).ok());
  EXPECT_EQ((std::filesystem::file_size(path) - values.size() * 4) % 64, 0u);
  const absl::StatusOr<NpyArray> array = ReadNpy(path);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape, ElementsAre(2, 1, 3));
  EXPECT_EQ(array->dtype, "<f4");
  EXPECT_EQ(*ToFloats(*array), values);
  std::filesystem::remove(path);
}

TEST(Npy, ScalarsVectorsAndEmptyArraysKeepTheirShape) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, std::vector<int64_t>{5}, std::vector<int64_t>{0, 4}}) {
    const std::string path = TestPath("shapes.npy");
    NpyArray expected{.dtype = "<f4", .shape = shape, .bytes = ""};
    ASSERT_TRUE(WriteNpy(path, shape, std::vector<float>(expected.num_elements(), 2.f)).ok());
    const absl::StatusOr<NpyArray> array = ReadNpy(path);
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->shape, shape);
    std::filesystem::remove(path);
  }
}

TEST(Npy, HalvesCoverSubnormalsInfinityAndSign) {
  const std::string data("\x00\x3c\x01\x00\x00\x7c\x00\xc0\xff\x7b\x00\x80", 12);
  const absl::StatusOr<NpyArray> array = ReadBytes(FileOf(HeaderOf("<f2", "(6,)"), data));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(*ToFloats(*array),
              ElementsAre(1.f, std::ldexp(1.f, -24), INFINITY, -2.f, 65504.f, -0.f));
  EXPECT_TRUE(std::signbit((*ToFloats(*array))[5]));
}

TEST(Npy, DoublesAndBooleansBecomeFloats) {
  const double numbers[] = {0.1, 1e300};
  const absl::StatusOr<NpyArray> doubles = ReadBytes(
      FileOf(HeaderOf("<f8", "(2,)"), std::string(reinterpret_cast<const char*>(numbers), 16)));
  ASSERT_TRUE(doubles.ok()) << doubles.status();
  EXPECT_THAT(*ToFloats(*doubles), ElementsAre(0.1f, INFINITY));
  EXPECT_THAT(*ToDoubles(*doubles), ElementsAre(0.1, 1e300));
  const absl::StatusOr<NpyArray> flags =
      ReadBytes(FileOf(HeaderOf("|b1", "(1, 2)"), std::string("\x00\x01", 2)));
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(*ToFloats(*flags), ElementsAre(0.f, 1.f));
}

TEST(Npy, IntegersAreReadButAreNoFloats) {
  const absl::StatusOr<NpyArray> array =
      ReadBytes(FileOf(HeaderOf("<i8", "(1,)"), std::string(8, '\1')));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(ToFloats(*array).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToDoubles(*array).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Npy, EveryOracleItemsFileIsReadable) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEND_ORACLE_DIR)) {
    const absl::StatusOr<NpyArray> items = ReadNpy((entry.path() / "items.npy").string());
    ASSERT_TRUE(items.ok()) << items.status();
    EXPECT_EQ(items->shape.size(), 2u);
    EXPECT_TRUE(ToFloats(*items).ok());
    ++files;
  }
  EXPECT_GT(files, 10);
}

TEST(Npy, VersionTwoHasAFourByteHeaderLength) {
  const std::string header = HeaderOf("<f4", "(1,)");
  std::string file("\x93NUMPY\x02\x00", 8);
  file += static_cast<char>(header.size());
  file += std::string(3, '\0');
  const absl::StatusOr<NpyArray> array = ReadBytes(file + header + std::string(4, '\0'));
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->shape, ElementsAre(1));
}

TEST(Npy, AMissingFileIsNotFound) {
  const absl::StatusOr<NpyArray> array = ReadNpy(TestPath("no_such_file.npy"));
  EXPECT_EQ(array.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(array.status().message()), HasSubstr("No such file"));
}

TEST(Npy, ADirectoryIsRefused) {
  EXPECT_EQ(ReadNpy(::testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Npy, DamagedFilesAreRefusedByName) {
  const std::string four(4, '\0');
  ExpectRefused("", "magic");
  ExpectRefused("PK\x03\x04 a zip", "magic");
  ExpectRefused(std::string("\x93NUMPY\x09\x00\x10\x00", 10), "format version 9.0");
  ExpectRefused(std::string("\x93NUMPY\x01\x00\xff\xff{", 11), "ends inside its header");
  ExpectRefused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f{", 13), "a header of");
  ExpectRefused(FileOf("", four), "not a dict");
  ExpectRefused(FileOf("{'descr'", four), "damaged");
  ExpectRefused(FileOf("{'descr: 1", four), "damaged");
  ExpectRefused(FileOf("{'descr': '<f4', 'shape': (1,)}", four), "no 'fortran_order'");
  ExpectRefused(FileOf("{'fortran_order': False, 'shape': (1,)}", four), "no 'descr'");
  ExpectRefused(FileOf("{'descr': '<f4', 'fortran_order': False}", four), "no 'shape'");
  ExpectRefused(FileOf("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", four),
                "Fortran order");
  ExpectRefused(FileOf("{'descr': [('a', '<f4')], 'fortran_order': False}", four), "structured");
  ExpectRefused(FileOf("{'evil': 1}", four), "unknown header key 'evil'");
  ExpectRefused(FileOf(HeaderOf("<f4", "(1,)") + "junk", four), "follows");
}

TEST(Npy, ForeignDtypesAreRefusedByName) {
  ExpectRefused(FileOf(HeaderOf(">f4", "(1,)"), std::string(4, '\0')), "'>f4'");
  ExpectRefused(FileOf(HeaderOf("|O", "(1,)"), std::string(8, '\0')), "'|O'");
  ExpectRefused(FileOf(HeaderOf("<c8", "(1,)"), std::string(8, '\0')), "'<c8'");
}

TEST(Npy, SizesThatDoNotFitAreRefusedBeforeMemoryIsTaken) {
  const std::string four(4, '\0');
  ExpectRefused(FileOf(HeaderOf("<f4", "(2,)"), four), "4 bytes of data, expected 8");
  ExpectRefused(FileOf(HeaderOf("<f4", "(1,)"), four + four), "8 bytes of data, expected 4");
  ExpectRefused(FileOf(HeaderOf("<f4", "(1000000000, 1000000)"), four), "4 bytes of data");
  ExpectRefused(FileOf(HeaderOf("<f4", "(1000000000, 1000000000, 1000000000)"), four),
                "larger than any memory");
  ExpectRefused(FileOf(HeaderOf("<f4", "(99999999999999999999,)"), four), "no size");
  ExpectRefused(FileOf(HeaderOf("<f4", "(-1,)"), four), "no size");
  ExpectRefused(FileOf(HeaderOf("<f4", "(1;2)"), four), "'shape' is damaged");
  ExpectRefused(FileOf(HeaderOf("<f4", "7"), four), "not a tuple");
}

TEST(Npy, AnUnwritablePathSaysWhy) {
  const absl::Status status =
      WriteNpy("/no/such/folder/x.npy", std::vector<int64_t>{1}, std::vector<float>{1.f});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace attend::client
