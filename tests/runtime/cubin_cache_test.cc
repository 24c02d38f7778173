#include "runtime/cubin_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/cache_directory.h"

namespace tilert {
namespace {

namespace fs = std::filesystem;

std::string RandomBytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

CacheEntry MakeEntry(uint32_t seed, size_t size = 300) {
  return {Sha256Of(RandomBytes(10, seed)), RandomBytes(40, seed + 1), RandomBytes(size, seed + 2)};
}

class CubinCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "tilert_cache_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    directory_ = root_ / "cache";
  }
  void TearDown() override { fs::remove_all(root_); }

  CacheOptions Options() const {
    CacheOptions options;
    options.directory = directory_;
    return options;
  }
  fs::path EntryPath(const std::string& key) const { return directory_ / CubinCache::FileName(key); }
  std::string ReadFile(const fs::path& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void WriteFile(const fs::path& path, const std::string& bytes) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  }
  size_t TemporaryFiles() const {
    size_t count = 0;
    for (const auto& file : fs::directory_iterator(directory_)) count += file.path().filename().string().rfind("tmp.", 0) == 0;
    return count;
  }

  fs::path root_, directory_;
};

TEST_F(CubinCacheTest, PublishThenFind) {
  const CacheEntry entry = MakeEntry(1);
  {
    CubinCache cache(Options());
    EXPECT_FALSE(cache.Find("key").has_value());
    ASSERT_TRUE(cache.Publish("key", entry).ok());
  }
  CubinCache cache(Options());
  EXPECT_EQ(cache.Find("key"), entry);
  EXPECT_FALSE(cache.Find("other").has_value());
  EXPECT_EQ(cache.stats().hits, 1u);
  EXPECT_EQ(TemporaryFiles(), 0u);
  struct stat status;
  ASSERT_EQ(stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(EntryPath("key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(CubinCacheTest, EveryFlippedByteAndEveryTruncationIsAMissThatHeals) {
  const std::string key = "program=p\narch=sm_80\n";
  const CacheEntry entry = MakeEntry(2, 64);
  CubinCache cache(Options());
  ASSERT_TRUE(cache.Publish(key, entry).ok());
  const std::string good = ReadFile(EntryPath(key));
  ASSERT_GT(good.size(), kCacheHeaderSize);
  int count = 0;
  const auto expect_heals = [&](const std::string& bad, const std::string& what) {
    WriteFile(EntryPath(key), bad);
    EXPECT_FALSE(cache.Find(key).has_value()) << what;
    EXPECT_FALSE(fs::exists(EntryPath(key))) << what << " must not stay";
    if (count++ % 32 != 0) return;  // a publish waits for the disk
    const absl::StatusOr<CacheEntry> built = cache.FindOrBuild(key, [&] { return entry; });
    ASSERT_TRUE(built.ok()) << what;
    EXPECT_EQ(ReadFile(EntryPath(key)), good) << what;
  };
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    expect_heals(bad, absl::StrCat("byte ", i, " flipped"));
  }
  for (size_t size = 0; size < good.size(); ++size) expect_heals(good.substr(0, size), absl::StrCat("cut to ", size));
  expect_heals(good + '\0', "one byte too many");
}

TEST_F(CubinCacheTest, ForcedCollisionAndOtherSourceAreMisses) {
  CubinCache cache(Options());
  const CacheEntry entry = MakeEntry(3);
  ASSERT_TRUE(cache.Publish("a", entry).ok());
  fs::rename(EntryPath("a"), EntryPath("b"));  // as if both keys had one hash
  EXPECT_FALSE(cache.Find("b").has_value());
  ASSERT_TRUE(cache.Publish("a", entry).ok());
  EXPECT_TRUE(cache.Find("a", &entry.source_hash).has_value());
  const Sha256Digest other = Sha256Of("another source");
  EXPECT_FALSE(cache.Find("a", &other).has_value());
}

TEST_F(CubinCacheTest, StrangeThingsInPlaceOfAnEntry) {
  CubinCache cache(Options());
  ASSERT_TRUE(cache.status().ok());
  const CacheEntry entry = MakeEntry(4);
  const auto expect_heals = [&](const std::string& what) {
    EXPECT_FALSE(cache.Find("k").has_value()) << what;
    absl::Status published;
    EXPECT_TRUE(cache
                    .FindOrBuild(
                        "k", [&] { return entry; }, &published)
                    .ok())
        << what;
    EXPECT_TRUE(published.ok()) << what << ": " << published;
    EXPECT_EQ(cache.Find("k"), entry) << what;
    fs::remove(EntryPath("k"));
  };
  fs::create_directory(EntryPath("k"));
  expect_heals("empty directory");
  fs::create_directories(EntryPath("k") / "deep");
  expect_heals("full directory");
  ASSERT_EQ(mkfifo(EntryPath("k").c_str(), 0600), 0);
  expect_heals("FIFO");
  fs::create_symlink(EntryPath("k"), EntryPath("k"));
  expect_heals("symlink loop");
  WriteFile(root_ / "elsewhere", EncodeCacheEntry("k", MakeEntry(5)));
  fs::create_symlink(root_ / "elsewhere", EntryPath("k"));
  expect_heals("symlink to a good entry elsewhere");
  EXPECT_TRUE(fs::exists(root_ / "elsewhere"));
  WriteFile(EntryPath("k"), EncodeCacheEntry("k", MakeEntry(5)));
  ASSERT_EQ(chmod(EntryPath("k").c_str(), 0666), 0);
  expect_heals("file that anybody may write");
}

TEST_F(CubinCacheTest, UntrustedDirectoriesAreRefused) {
  const CacheEntry entry = MakeEntry(6);
  const auto expect_refused = [&](const std::string& what) {
    CubinCache cache(Options());
    EXPECT_EQ(cache.status().code(), absl::StatusCode::kFailedPrecondition) << what;
    EXPECT_FALSE(cache.Publish("k", entry).ok()) << what;
    EXPECT_TRUE(cache.FindOrBuild("k", [&] { return entry; }).ok()) << what << " must not fail a load";
  };
  fs::create_directory(root_ / "real");
  fs::create_directory_symlink(root_ / "real", directory_);
  expect_refused("symlink");
  EXPECT_TRUE(fs::is_empty(root_ / "real"));
  fs::remove(directory_);
  fs::create_directory(directory_);
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  expect_refused("world-writable");
  ASSERT_EQ(chmod(directory_.c_str(), 0720), 0);
  expect_refused("group-writable");
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(directory_.c_str(), 12345, 12345), 0);
    expect_refused("somebody else's");
    ASSERT_EQ(chown(directory_.c_str(), 0, 0), 0);
  }
  fs::remove(directory_);
  WriteFile(directory_, "a file");
  {
    CubinCache cache(Options());
    EXPECT_FALSE(cache.status().ok());
    EXPECT_TRUE(cache.FindOrBuild("k", [&] { return entry; }).ok());
  }
  CacheOptions relative;
  relative.directory = "not/absolute";
  EXPECT_FALSE(CubinCache(relative).status().ok());
}

TEST_F(CubinCacheTest, ThreadsBuildEachKeyOnce) {
  CubinCache cache(Options());
  std::atomic<int> builds{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 10; ++k) {
        const int id = (k + t) % 10;
        const absl::StatusOr<CacheEntry> entry = cache.FindOrBuild(absl::StrCat("key", id), [&]() -> absl::StatusOr<CacheEntry> {
          ++builds;
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          return MakeEntry(id);
        });
        ASSERT_TRUE(entry.ok());
        EXPECT_EQ(*entry, MakeEntry(id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(builds, 10);
}

TEST_F(CubinCacheTest, ProcessesBuildEachKeyOnce) {
  constexpr int kProcesses = 64, kKeys = 20;
  fs::create_directory(root_ / "builds");
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      CubinCache cache(Options());
      bool ok = true;
      for (int k = 0; k < kKeys; ++k) {
        const int id = (k * 7 + p) % kKeys;
        const absl::StatusOr<CacheEntry> entry = cache.FindOrBuild(absl::StrCat("key", id), [&]() -> absl::StatusOr<CacheEntry> {
          // A file per build, so that the parent can count them.
          close(open((root_ / "builds" / absl::StrCat(id, ".", getpid())).c_str(), O_CREAT | O_WRONLY, 0600));
          usleep(2000);
          return MakeEntry(id);
        });
        ok = ok && entry.ok() && *entry == MakeEntry(id);
      }
      _exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "builds"), {}), kKeys);
  EXPECT_EQ(TemporaryFiles(), 0u);
}

TEST_F(CubinCacheTest, KilledBuilderIsTakenOver) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    CubinCache cache(Options());
    (void)cache.FindOrBuild("k", [&]() -> absl::StatusOr<CacheEntry> {
      (void)!write(ready[1], "x", 1);
      pause();
      return MakeEntry(1);
    });
    _exit(0);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::thread killer([child] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(child, SIGKILL);
  });
  CubinCache cache(Options());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(cache.FindOrBuild("k", [&] { return MakeEntry(7); }).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1100));
  killer.join();
  waitpid(child, nullptr, 0);
  close(ready[0]), close(ready[1]);
}

TEST_F(CubinCacheTest, WaitForAnotherProcessIsBounded) {
  CacheOptions options = Options();
  options.lock_wait = std::chrono::milliseconds(50);
  CubinCache holder(options), waiter(options);  // two caches: no common flight, like two processes
  std::atomic<bool> holding{false}, release{false};
  std::thread thread([&] {
    (void)holder.FindOrBuild("k", [&]() -> absl::StatusOr<CacheEntry> {
      holding = true;
      while (!release) std::this_thread::yield();
      return MakeEntry(1);
    });
  });
  while (!holding) std::this_thread::yield();
  EXPECT_TRUE(waiter.FindOrBuild("k", [] { return MakeEntry(1); }).ok());
  release = true;
  thread.join();
}

TEST_F(CubinCacheTest, FailedBuildIsReportedAndNotStored) {
  CubinCache cache(Options());
  const auto fails = [] { return absl::StatusOr<CacheEntry>(absl::InvalidArgumentError("does not compile")); };
  EXPECT_EQ(cache.FindOrBuild("k", fails).status(), absl::InvalidArgumentError("does not compile"));
  EXPECT_EQ(cache.FindOrBuild("k", [] { return CacheEntry{}; }).status().code(), absl::StatusCode::kInternal) << "empty code";
  EXPECT_FALSE(cache.Find("k").has_value());
  EXPECT_TRUE(cache.FindOrBuild("k", [] { return MakeEntry(1); }).ok());
}

TEST_F(CubinCacheTest, OrphanedTemporaryFilesAreSweptOthersAreNot) {
  CubinCache cache(Options());
  ASSERT_TRUE(cache.status().ok());
  WriteFile(directory_ / "tmp.0123", "half an entry of a process that died");
  WriteFile(directory_ / "tmp.4567", "being written");
  WriteFile(directory_ / "notes.txt", "not ours");
  const int writer = open((directory_ / "tmp.4567").c_str(), O_RDWR);
  ASSERT_EQ(TryLockByte(writer, 0), LockResult::kLocked);
  ASSERT_TRUE(cache.Publish("k", MakeEntry(1)).ok());
  EXPECT_FALSE(fs::exists(directory_ / "tmp.0123"));
  EXPECT_TRUE(fs::exists(directory_ / "tmp.4567"));
  EXPECT_TRUE(fs::exists(directory_ / "notes.txt"));
  close(writer);
}

TEST_F(CubinCacheTest, LeastRecentlyUsedGoFirst) {
  CacheOptions options = Options();
  options.max_bytes = 10 * 1600;
  CubinCache cache(options);
  for (int i = 0; i < 8; ++i) {
    const std::string key = absl::StrCat("k", i);
    ASSERT_TRUE(cache.Publish(key, MakeEntry(i, 1300)).ok());
    const struct timespec old[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, EntryPath(key).c_str(), old, 0), 0);
  }
  EXPECT_TRUE(cache.Find("k0").has_value());  // now the youngest
  for (int i = 8; i < 12; ++i) ASSERT_TRUE(cache.Publish(absl::StrCat("k", i), MakeEntry(i, 1300)).ok());
  uint64_t total = 0;
  for (const CacheListing& listing : cache.List()) total += listing.bytes;
  EXPECT_LE(total, options.max_bytes);
  EXPECT_TRUE(cache.Find("k0").has_value());
  EXPECT_FALSE(cache.Find("k1").has_value());
  EXPECT_TRUE(cache.Find("k11").has_value());
  EXPECT_EQ(cache.Publish("huge", MakeEntry(99, options.max_bytes)).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CubinCacheTest, ListAndClear) {
  CubinCache cache(Options());
  ASSERT_TRUE(cache.Publish("one", MakeEntry(1)).ok());
  ASSERT_TRUE(cache.Publish("two", MakeEntry(2)).ok());
  WriteFile(EntryPath("three"), "damaged");
  std::vector<std::string> keys;
  for (const CacheListing& listing : cache.List()) keys.push_back(listing.key);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"", "one", "two"}));
  EXPECT_GT(cache.Clear().value(), 600u);
  EXPECT_TRUE(cache.List().empty());
}

TEST_F(CubinCacheTest, FullAndReadOnlyDisksCostTimeOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a tmpfs";
  fs::create_directory(directory_);
  if (mount("none", directory_.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) GTEST_SKIP() << "cannot mount here";
  {
    CubinCache cache(Options());
    absl::Status published;
    const CacheEntry big = MakeEntry(1, 200000);
    EXPECT_EQ(cache
                  .FindOrBuild(
                      "big", [&] { return big; }, &published)
                  .value(),
              big);
    EXPECT_EQ(published.code(), absl::StatusCode::kResourceExhausted) << published;
    EXPECT_FALSE(cache.Find("big").has_value());
    EXPECT_EQ(TemporaryFiles(), 0u) << "the partial file must be gone";
    EXPECT_TRUE(cache.Publish("small", MakeEntry(2)).ok());
    ASSERT_EQ(mount("none", directory_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k"), 0);
    EXPECT_TRUE(cache.Find("small").has_value());
    EXPECT_EQ(cache
                  .FindOrBuild(
                      "new", [&] { return big; }, &published)
                  .value(),
              big);
    EXPECT_EQ(published.code(), absl::StatusCode::kPermissionDenied) << published;
  }
  umount2(directory_.c_str(), MNT_DETACH);
}

TEST_F(CubinCacheTest, DirectoryFromTheEnvironment) {
  const auto keep = [](const char* name) {
    const char* v = getenv(name);
    return std::make_pair(v != nullptr, std::string(v ? v : ""));
  };
  const auto old_home = keep("HOME"), old_xdg = keep("XDG_CACHE_HOME"), old_own = keep("TILERT_CACHE_DIR");
  setenv("TILERT_CACHE_DIR", "/a", 1), setenv("XDG_CACHE_HOME", "/b", 1), setenv("HOME", "/c", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "/a");
  setenv("TILERT_CACHE_DIR", "", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "") << "set to nothing: no cache";
  setenv("TILERT_CACHE_DIR", "relative", 1);
  EXPECT_FALSE(OpenCacheDirectory(DefaultCacheDirectory()).ok()) << "refused; nothing else is used in its place";
  unsetenv("TILERT_CACHE_DIR");
  EXPECT_EQ(DefaultCacheDirectory(), "/b/tilert");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "/c/.cache/tilert");
  unsetenv("HOME");
  EXPECT_EQ(DefaultCacheDirectory().rfind('/', 0), 0u) << "falls back to the passwd entry";
  const auto restore = [](const char* name, const auto& old) {
    old.first ? setenv(name, old.second.c_str(), 1) : unsetenv(name);
  };
  restore("HOME", old_home), restore("XDG_CACHE_HOME", old_xdg), restore("TILERT_CACHE_DIR", old_own);
}

}  // namespace
}  // namespace tilert
