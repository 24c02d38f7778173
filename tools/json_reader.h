// Reads JSON as a stream, for headers whose structure is known. Untrusted input: bounded depth, no recursion into data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilert::tool {

// Each method reads one value and returns false once anything was wrong; then all others do too.
//
//   JsonReader json(text);
//   std::string key;
//   for (json.BeginObject(); json.NextKey(&key);) { if (key == "x") json.Int(&x); else json.Skip(); }
//   return json.AtEnd();
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  bool BeginObject() { return Begin('{'); }
  // The next key of the innermost object; false after the last, which also leaves the object.
  bool NextKey(std::string* key);
  bool BeginArray() { return Begin('['); }
  // True before each element of the innermost array; false after the last, which also leaves the array.
  bool NextElement() { return Next(']'); }
  bool String(std::string* value);
  // A whole number that fits.
  bool Int(int64_t* value);
  // Any value.
  bool Skip();

  bool ok() const { return ok_; }
  // All is read and nothing was wrong.
  bool AtEnd();

 private:
  static constexpr int kMaxDepth = 16;

  bool Begin(char c);
  bool Next(char close);
  void Space();
  bool Eat(char c);
  bool Fail() { return ok_ = false; }
  bool Escape(std::string* value);
  bool Hex4(uint32_t* code);

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool first_ = false;  // nothing of the innermost array or object has been read
  bool ok_ = true;
};

}  // namespace tilert::tool
