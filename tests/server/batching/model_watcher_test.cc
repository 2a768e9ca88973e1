#include "server/batching/model_watcher.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/batching/fakes.h"

namespace attend {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A repository on disk whose files say, to a loader of the test's own, whether they load.
class ModelWatcherTest : public ::testing::Test {
 protected:
  ModelWatcherTest()
      : root_(fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~ModelWatcherTest() override { fs::remove_all(root_); }

  ModelWatcher& Watch() {
    WatcherOptions options;
    options.repository = root_.string();
    options.load =
        [this](const ModelVersion& version) -> absl::StatusOr<std::shared_ptr<const ServedModel>> {
      std::string text;
      std::ifstream(version.directory + "/attend.json") >> text;
      if (text == "broken") return absl::InvalidArgumentError("attend.json: broken");
      return ServeFake(version.name, version.version).model;
    };
    options.on_event = [this](const ModelEvent& event) {
      const char* kinds[] = {"loaded", "removed", "failed"};
      events_.push_back(
          absl::StrCat(kinds[static_cast<int>(event.kind)], " ", event.name, "@", event.version));
    };
    watcher_.emplace(options, &registry_);
    return *watcher_;
  }
  void Write(const std::string& version, const std::string& text) {
    fs::create_directories(root_ / version);
    std::ofstream(root_ / version / "attend.json") << text;
  }
  // As a careful publisher does; file systems keep time in ticks, so until the move is a later one.
  void Publish(const std::string& version, const std::string& text) {
    const fs::path draft = root_ / ".draft";
    fs::create_directories(draft);
    std::ofstream(draft / "attend.json") << text;
    fs::create_directories((root_ / version).parent_path());
    do {
      fs::rename(draft, root_ / version);
      if (FingerprintOf((root_ / version).string()).published_by_rename) return;
      fs::rename(root_ / version, draft);
    } while (true);
  }
  std::vector<std::string> Events() { return std::exchange(events_, {}); }

  fs::path root_;
  ModelRegistry registry_;
  std::vector<std::string> events_;
  std::optional<ModelWatcher> watcher_;
};

TEST_F(ModelWatcherTest, AVersionPublishedByRenameIsTakenUpAtTheNextPoll) {
  ModelWatcher& watcher = Watch();
  Publish("m/1", "good");
  watcher.Poll();
  EXPECT_THAT(Events(), ElementsAre("loaded m@1"));
  EXPECT_TRUE(registry_.Find("m", "").ok());
  watcher.Poll();
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(ModelWatcherTest, AVersionWrittenInPlaceIsTakenUpOnceItIsUnchangedForTwoPolls) {
  ModelWatcher& watcher = Watch();
  Write("m/1", "half");
  watcher.Poll();
  Write("m/1", "whole and longer");
  watcher.Poll();
  EXPECT_THAT(Events(), IsEmpty());
  watcher.Poll();
  EXPECT_THAT(Events(), ElementsAre("loaded m@1"));
}

TEST_F(ModelWatcherTest, ANewVersionBecomesTheDefaultAndTheOldOneStays) {
  ModelWatcher& watcher = Watch();
  Publish("m/1", "good");
  watcher.Poll();
  const auto old = *registry_.Find("m", "");
  Publish("m/2", "good");
  watcher.Poll();
  EXPECT_EQ((*registry_.Find("m", ""))->version, 2);
  EXPECT_EQ(*registry_.Find("m", "1"), old);
}

TEST_F(ModelWatcherTest, WhenANewStateFailsTheOldOneStaysAndItIsToldOnce) {
  ModelWatcher& watcher = Watch();
  Publish("m/1", "good");
  watcher.Poll();
  const auto old = *registry_.Find("m", "1");
  Events();
  Write("m/1", "broken");
  for (int i = 0; i < 4; ++i) watcher.Poll();
  EXPECT_THAT(Events(), ElementsAre("failed m@1"));
  EXPECT_EQ(*registry_.Find("m", "1"), old);
  Write("m/1", "mended");
  for (int i = 0; i < 4; ++i) watcher.Poll();
  EXPECT_THAT(Events(), ElementsAre("loaded m@1"));
  EXPECT_NE(*registry_.Find("m", "1"), old);
}

TEST_F(ModelWatcherTest, AVersionThatIsGoneForTwoPollsIsRemoved) {
  ModelWatcher& watcher = Watch();
  Publish("m/1", "good");
  Publish("m/2", "good");
  watcher.Poll();
  Events();
  fs::remove_all(root_ / "m" / "2");
  watcher.Poll();
  EXPECT_THAT(Events(), IsEmpty());
  watcher.Poll();
  EXPECT_THAT(Events(), ElementsAre("removed m@2"));
  EXPECT_EQ((*registry_.Find("m", ""))->version, 1);
}

TEST_F(ModelWatcherTest, ARepositoryThatCannotBeListedChangesNothingAndIsToldOnce) {
  ModelWatcher& watcher = Watch();
  Publish("m/1", "good");
  watcher.Poll();
  Events();
  Write("m/first", "no version number");
  for (int i = 0; i < 3; ++i) watcher.Poll();
  EXPECT_THAT(Events(), ElementsAre("failed @0"));
  EXPECT_TRUE(registry_.Find("m", "1").ok());
}

TEST_F(ModelWatcherTest, WhatTheServerStartedWithIsNotLoadedAgain) {
  Publish("m/1", "good");
  registry_.Put(ServeFake("m").model);
  ModelWatcher& watcher = Watch();
  for (int i = 0; i < 3; ++i) watcher.Poll();
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(ModelWatcherTest, LoadTakesTheHighestOnDiskAndReloadsWhatIsServed) {
  ModelWatcher& watcher = Watch();
  Write("m/1", "good");
  Write("m/2", "good");
  EXPECT_TRUE(watcher.Load("m", "").ok());
  EXPECT_THAT(Events(), ElementsAre("loaded m@2"));
  EXPECT_TRUE(watcher.Load("m", "2").ok());
  EXPECT_THAT(Events(), ElementsAre("loaded m@2"));
  EXPECT_TRUE(watcher.Load("m", "1").ok());
  EXPECT_EQ(registry_.List().size(), 2u);
}

TEST_F(ModelWatcherTest, LoadSaysWhatIsMissingOrWrong) {
  ModelWatcher& watcher = Watch();
  Write("m/1", "broken");
  EXPECT_EQ(watcher.Load("n", "").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(watcher.Load("m", "7").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(watcher.Load("m", "one").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(watcher.Load("m", "1").message()), HasSubstr("broken"));
}

TEST_F(ModelWatcherTest, WhatWasUnloadedStaysSoUntilItChangesOrIsLoaded) {
  ModelWatcher& watcher = Watch();
  Publish("m/1", "good");
  watcher.Poll();
  EXPECT_TRUE(watcher.Unload("m", "").ok());
  EXPECT_EQ(watcher.Unload("m", "").code(), absl::StatusCode::kNotFound);
  for (int i = 0; i < 3; ++i) watcher.Poll();
  EXPECT_THAT(Events(), ElementsAre("loaded m@1", "removed m@1"));
  EXPECT_TRUE(watcher.Load("m", "").ok());
  EXPECT_TRUE(registry_.Find("m", "1").ok());
}

TEST_F(ModelWatcherTest, PollsByItself) {
  WatcherOptions options;
  options.repository = root_.string();
  options.poll = std::chrono::milliseconds(1);
  Gate loads;
  options.load =
      [&](const ModelVersion& version) -> absl::StatusOr<std::shared_ptr<const ServedModel>> {
    loads.Enter();
    return ServeFake(version.name, version.version).model;
  };
  ModelWatcher watcher(options, &registry_);
  Publish("m/1", "good");
  loads.AwaitEntered(1);
}

}  // namespace
}  // namespace attend
