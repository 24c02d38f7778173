// Runs LLVMFuzzerTestOneInput once on every file below the folders given: a saved corpus as a plain test. With --seconds=N then
// on random changes of them for so long; the input of a crash is left in the working directory. --seed=N repeats a run.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<char>;
constexpr size_t kHeaderBytes = 64;
constexpr char kLastInput[] = "fuzz_last_input";

void Run(const Bytes& bytes) { LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()); }

std::vector<Bytes> ReadBelow(const char* folder) {
  std::vector<Bytes> inputs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// A few bits, bytes or small numbers behind the header become others.
void Change(Bytes& bytes, std::mt19937_64& random) {
  if (bytes.size() < kHeaderBytes + 8) return;
  for (size_t edits = 1 + random() % 4; edits > 0; --edits) {
    const size_t at = kHeaderBytes + random() % (bytes.size() - kHeaderBytes - 4);
    if (random() % 2 != 0) {
      const uint32_t small = static_cast<uint32_t>(random() % 64);
      std::memcpy(&bytes[at / 4 * 4], &small, sizeof small);
    } else if (random() % 2 != 0) {
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
    } else {
      bytes[at] = static_cast<char>(random());
    }
  }
}

int RunChanged(const std::vector<Bytes>& inputs, int seconds, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    Bytes bytes = inputs[random() % inputs.size()];
    Change(bytes, random);
    std::ofstream(kLastInput, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    Run(bytes);
  }
  std::filesystem::remove(kLastInput);
  return runs;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Bytes> inputs;
  int seconds = 0;
  uint64_t seed = std::random_device()();
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seconds=", 10) == 0) {
      seconds = std::atoi(argv[i] + 10);
    } else if (std::strncmp(argv[i], "--seed=", 7) == 0) {
      seed = std::strtoull(argv[i] + 7, nullptr, 10);
    } else {
      for (Bytes& bytes : ReadBelow(argv[i])) inputs.push_back(std::move(bytes));
    }
  }
  for (const Bytes& bytes : inputs) Run(bytes);
  std::printf("%zu inputs replayed\n", inputs.size());
  if (inputs.empty()) return 1;
  if (seconds > 0) {
    std::printf("--seed=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    std::printf("%d changed inputs run\n", RunChanged(inputs, seconds, seed));
  }
  return 0;
}
