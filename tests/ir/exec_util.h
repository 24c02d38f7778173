// Arrays and shorthand for tests that run programs on the executor.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/executor.h"
#include "ir/numeric.h"

namespace tilert {

// A host tensor of any element type, seen as doubles. Memory starts as 0xa5 bytes, so that what a program leaves alone shows.
class Array {
 public:
  Array(DType type, std::vector<int64_t> shape) : type_(type), shape_(std::move(shape)) {
    int64_t size = 1;
    for (int64_t e : shape_) size *= e;
    size_ = size;
    bytes_.assign(static_cast<size_t>(size * DTypeBytes(type)) + 8, '\xa5');
  }
  int64_t size() const { return size_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  DType type() const { return type_; }
  void* data() { return bytes_.data(); }

  double operator[](int64_t k) const { return AsDouble(At(k)); }
  // All elements: quicker than one by one.
  std::vector<double> Values() const {
    std::vector<Value> elements(static_cast<size_t>(size_));
    LoadRow(type_, bytes_.data(), 1, size_, elements.data());
    std::vector<double> values;
    values.reserve(elements.size());
    for (const Value& v : elements) values.push_back(AsDouble(v));
    return values;
  }
  int64_t Int(int64_t k) const { return At(k).i; }
  void Set(int64_t k, double x) {
    const Value v = IsFloat(type_) ? Value{.f = RoundToType(type_, x)} : Value{.i = static_cast<int64_t>(x)};
    StoreRow(type_, &v, 1, bytes_.data() + k * DTypeBytes(type_), 0);
  }
  void SetInt(int64_t k, int64_t x) {
    const Value v{.i = x};
    StoreRow(type_, &v, 1, bytes_.data() + k * DTypeBytes(type_), 0);
  }
  Array& Fill(double x) {
    for (int64_t k = 0; k < size_; ++k) Set(k, x);
    return *this;
  }
  // Uniform in [low, high], rounded to the type; integers for integer types.
  Array& Random(uint64_t seed, double low = -1, double high = 1) {
    std::mt19937_64 random(seed);
    for (int64_t k = 0; k < size_; ++k) {
      const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
      Set(k, IsFloat(type_) ? low + (high - low) * unit : std::floor(low + (high - low + 1) * unit));
    }
    return *this;
  }
  bool Untouched(int64_t k) const {
    for (int b = 0; b < DTypeBytes(type_); ++b) {
      if (bytes_[static_cast<size_t>(k * DTypeBytes(type_) + b)] != '\xa5') return false;
    }
    return true;
  }
  TensorArg arg() { return {bytes_.data(), type_, shape_, {}}; }

 private:
  double AsDouble(Value v) const {
    if (IsFloat(type_)) return v.f;
    return KindOf(type_) == DTypeKind::kUnsigned ? static_cast<double>(static_cast<uint64_t>(v.i)) : static_cast<double>(v.i);
  }
  Value At(int64_t k) const {
    Value v;
    LoadRow(type_, bytes_.data() + k * DTypeBytes(type_), 0, 1, &v);
    return v;
  }

  DType type_;
  std::vector<int64_t> shape_;
  int64_t size_ = 0;
  std::vector<char> bytes_;
};

inline Program Built(ProgramBuilder& b) {
  absl::StatusOr<Program> program = b.Build();
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program();
}

// Runs with two workers unless `options` says otherwise.
inline absl::Status RunOn(const Program& program, std::vector<Array*> arrays, std::vector<ScalarArg> scalars = {},
                          ExecOptions options = {}) {
  std::vector<TensorArg> args;
  for (Array* a : arrays) args.push_back(a->arg());
  if (options.threads == 0) options.threads = 2;
  return Execute(program, args, scalars, options);
}

inline ExecOptions Checked(uint64_t seed = 17) {
  ExecOptions options;
  options.check_races = options.check_unwritten = true;
  options.seed = seed;
  return options;
}

// Expects success of a run with all checks.
inline void ExpectRuns(const Program& program, std::vector<Array*> arrays, std::vector<ScalarArg> scalars = {}) {
  const absl::Status status = RunOn(program, std::move(arrays), std::move(scalars), Checked());
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace tilert
