// The folders of a model repository.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/load_model.h"
#include "tests/core/model_files.h"

namespace attend {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

std::string Message(const std::string& repository) {
  return std::string(ListModelVersions(repository).status().message());
}

TEST(ModelRepository, VersionsAreSortedByNameThenNumber) {
  TempDirectory repository;
  for (const char* name : {"b/2", "b/10", "a/1"}) {
    repository.Write(std::string(name) + "/attend.json", "{}");
  }
  const auto versions = ListModelVersions(repository.path());
  ASSERT_TRUE(versions.ok()) << versions.status();
  ASSERT_EQ(versions->size(), 3u);
  EXPECT_EQ((*versions)[0].name, "a");
  EXPECT_EQ((*versions)[0].directory, repository.path() + "/a/1");
  EXPECT_EQ((*versions)[1].name, "b");
  EXPECT_EQ((*versions)[1].version, 2);
  EXPECT_EQ((*versions)[2].version, 10);
}

TEST(ModelRepository, HiddenEntriesAndFilesArePassedOver) {
  TempDirectory repository;
  repository.Write("a/1/attend.json", "{}");
  repository.Write("a/README.md", "");
  repository.Write("a/.cache/x", "");
  repository.Write("a/_old/x", "");
  repository.Write("README.md", "");
  repository.Write(".git/x", "");
  repository.Write("_drafts/x", "");
  fs::create_directory(repository.path() + "/lost+found");
  const auto versions = ListModelVersions(repository.path());
  ASSERT_TRUE(versions.ok()) << versions.status();
  EXPECT_EQ(versions->size(), 1u);
}

TEST(ModelRepository, AnEmptyRepositoryHoldsNothing) {
  TempDirectory repository;
  const auto versions = ListModelVersions(repository.path());
  ASSERT_TRUE(versions.ok()) << versions.status();
  EXPECT_TRUE(versions->empty());
}

TEST(ModelRepository, ARepositoryThatIsNotThereIsNotFound) {
  TempDirectory repository;
  EXPECT_TRUE(absl::IsNotFound(ListModelVersions(repository.path() + "/x").status()));
  EXPECT_TRUE(absl::IsNotFound(ListModelVersions(repository.Write("file", "")).status()));
}

TEST(ModelRepository, AVersionThatIsNoPositiveIntegerIsRefused) {
  for (const char* version : {"0", "-1", "01", "v1", "1.0", "latest", "9223372036854775808"}) {
    TempDirectory repository;
    repository.Write(std::string("a/") + version + "/attend.json", "{}");
    EXPECT_THAT(Message(repository.path()),
                HasSubstr("the version \"" + std::string(version) + "\" is no positive integer"));
  }
}

TEST(ModelRepository, AModelWithoutVersionsIsRefused) {
  TempDirectory repository;
  fs::create_directory(repository.path() + "/a");
  EXPECT_EQ(Message(repository.path()), repository.path() + "/a: holds no version folder");
  repository.Write("a/attend.json", "{}");
  EXPECT_EQ(Message(repository.path()),
            repository.path() + "/a: holds no version: move its files into the folder 1");
}

TEST(ModelRepository, NamesThatCouldNotBeAskedForAreRefused) {
  for (const char* name : {"a@1", "a b", "a\nb"}) {
    TempDirectory repository;
    repository.Write(std::string(name) + "/1/attend.json", "{}");
    EXPECT_THAT(Message(repository.path()), HasSubstr("the model name \"a")) << name;
  }
}

TEST(ModelRepository, WhatIsWrongWithOneEntryLeavesTheOthersListed) {
  TempDirectory repository;
  for (const char* name : {"a/1", "a b/1", "c/01", "d/2"}) {
    repository.Write(std::string(name) + "/attend.json", "{}");
  }
  fs::create_directory(repository.path() + "/empty");
  std::vector<absl::Status> broken;
  const auto versions = ListModelVersions(repository.path(), &broken);
  ASSERT_TRUE(versions.ok()) << versions.status();
  ASSERT_EQ(versions->size(), 2u);
  EXPECT_EQ((*versions)[0].name, "a");
  EXPECT_EQ((*versions)[1].name, "d");
  EXPECT_EQ(broken.size(), 3u);
}

TEST(ModelRepository, LinksThatStayInsideAreFollowed) {
  TempDirectory repository;
  repository.Write("..data/a/1/attend.json", "{}");
  fs::create_symlink("..data/a", repository.path() + "/a");
  const auto versions = ListModelVersions(repository.path());
  ASSERT_TRUE(versions.ok()) << versions.status();
  EXPECT_EQ(versions->size(), 1u);
}

TEST(ModelRepository, LinksThatLeaveOrLeadNowhereAreRefused) {
  TempDirectory outside, repository;
  outside.Write("1/attend.json", "{}");
  fs::create_symlink(outside.path(), repository.path() + "/a");
  EXPECT_THAT(Message(repository.path()), HasSubstr("/a: leads out of the repository"));
  fs::remove(repository.path() + "/a");
  fs::create_directory(repository.path() + "/a");
  fs::create_symlink(outside.path() + "/1", repository.path() + "/a/1");
  EXPECT_THAT(Message(repository.path()), HasSubstr("/a/1: leads out of the repository"));
  fs::remove(repository.path() + "/a/1");
  fs::create_symlink("nowhere", repository.path() + "/a/1");
  EXPECT_THAT(Message(repository.path()), HasSubstr("/a/1: can't be followed"));
  fs::remove(repository.path() + "/a/1");
  fs::create_symlink("1", repository.path() + "/a/1");
  EXPECT_THAT(Message(repository.path()), HasSubstr("/a/1: can't be followed"));
}

TEST(ModelRepository, ARepositoryMayBeALinkItself) {
  TempDirectory repository, elsewhere;
  repository.Write("a/1/attend.json", "{}");
  fs::create_symlink(repository.path(), elsewhere.path() + "/models");
  const auto versions = ListModelVersions(elsewhere.path() + "/models");
  ASSERT_TRUE(versions.ok()) << versions.status();
  EXPECT_EQ(versions->size(), 1u);
}

}  // namespace
}  // namespace attend
