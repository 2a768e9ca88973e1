#include "core/cpu_quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/cgroup.h"
#include "core/memory_limit.h"

namespace attend {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A file tree of its own for each test.
class CpuQuota : public ::testing::Test {
 protected:
  CpuQuota()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
  }
  ~CpuQuota() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

TEST_F(CpuQuota, WithoutGroupsTheAffinityCounts) {
  EXPECT_EQ(UsableCpus(root(), 6), 6);
  EXPECT_EQ(UsableCpus(root(), 0), 1);
}

TEST_F(CpuQuota, Version2IsRoundedDownAndNeverZero) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "350000 100000\n");
  EXPECT_EQ(UsableCpus(root(), 8), 3);
  EXPECT_EQ(UsableCpus(root(), 2), 2);
  Write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(UsableCpus(root(), 8), 1);
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableCpus(root(), 8), 8);
}

TEST_F(CpuQuota, TheLowestLimitOfTheGroupsAboveCounts) {
  Write("proc/self/cgroup", "0::/a/b\n");
  Write("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableCpus(root(), 8), 2);
}

TEST_F(CpuQuota, Version1WithControllersMountedTogetherOrApart) {
  Write("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n");
  Write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCpus(root(), 8), 2);
  Write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "150000\n");
  Write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCpus(root(), 8), 1);
}

TEST_F(CpuQuota, Version1WithoutAQuotaIsMinusOne) {
  Write("proc/self/cgroup", "1:cpu:/\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCpus(root(), 8), 8);
}

TEST_F(CpuQuota, InAContainerTheHostsPathIsMissingAndTheMountsRootCounts) {
  Write("proc/self/cgroup", "3:cpu:/docker/0123abcd\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableCpus(root(), 8), 3);
}

TEST_F(CpuQuota, FilesThatHoldNonsenseAreNoLimit) {
  Write("proc/self/cgroup", "nonsense\n0::/\n");
  Write("sys/fs/cgroup/cpu.max", "much 0\n");
  EXPECT_EQ(UsableCpus(root(), 4), 4);
  Write("sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_EQ(UsableCpus(root(), 4), 4);
}

TEST_F(CpuQuota, MemoryIsTheLowestLimitOfEitherVersion) {
  EXPECT_EQ(CgroupMemoryLimit(root()), std::nullopt);
  Write("proc/self/cgroup", "2:memory:/a\n0::/a\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(CgroupMemoryLimit(root()), std::nullopt);
  Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(CgroupMemoryLimit(root()), int64_t{1} << 31);
  Write("sys/fs/cgroup/a/memory.max", "1073741824\n");
  EXPECT_EQ(CgroupMemoryLimit(root()), int64_t{1} << 30);
  EXPECT_EQ(UsableMemory(root(), int64_t{1} << 40), int64_t{1} << 30);
  EXPECT_EQ(UsableMemory(root(), int64_t{1} << 20), int64_t{1} << 20);
}

TEST_F(CpuQuota, WorkersArePinnedOnlyInsideASetOfExactlyTheirNumber) {
  EXPECT_THAT(CpusToPin(2, {4, 6}), ElementsAre(4, 6));
  EXPECT_THAT(CpusToPin(1, {4, 6}), IsEmpty());
  EXPECT_THAT(CpusToPin(3, {4, 6}), IsEmpty());
}

}  // namespace
}  // namespace attend
