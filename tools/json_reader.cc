#include "tools/json_reader.h"

namespace tilert::tool {
namespace {

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xc0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xe0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    *out += static_cast<char>(0xf0 | code >> 18);
    *out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

}  // namespace

void JsonReader::Space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
}

bool JsonReader::Eat(char c) {
  Space();
  if (!ok_ || at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonReader::Begin(char c) {
  if (!Eat(c) || ++depth_ > kMaxDepth) return Fail();
  first_ = true;
  return true;
}

bool JsonReader::Next(char close) {
  if (!ok_) return false;
  if (Eat(close)) {
    --depth_;
    first_ = false;
    return false;
  }
  if (!first_ && !Eat(',')) return Fail();
  first_ = false;
  return true;
}

bool JsonReader::NextKey(std::string* key) {
  if (!Next('}')) return false;
  if (!String(key)) return false;
  return Eat(':') || Fail();
}

bool JsonReader::Hex4(uint32_t* code) {
  *code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ >= text_.size()) return Fail();
    const char c = text_[at_];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return Fail();
    *code = *code * 16 + static_cast<uint32_t>(digit);
  }
  return true;
}

bool JsonReader::Escape(std::string* value) {
  if (at_ >= text_.size()) return Fail();
  const char c = text_[at_++];
  static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  if (const size_t i = kFrom.find(c); i != std::string_view::npos) {
    *value += kTo[i];
    return true;
  }
  uint32_t code = 0;
  if (c != 'u' || !Hex4(&code)) return Fail();
  if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
    uint32_t low = 0;
    at_ += 2;
    if (!Hex4(&low) || low < 0xdc00 || low >= 0xe000) return Fail();
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xd800 && code < 0xe000) {
    return Fail();
  }
  AppendUtf8(code, value);
  return true;
}

bool JsonReader::String(std::string* value) {
  value->clear();
  if (!Eat('"')) return Fail();
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return true;
    if (static_cast<unsigned char>(c) < 0x20) return Fail();
    if (c != '\\') {
      *value += c;
    } else if (!Escape(value)) {
      return false;
    }
  }
  return Fail();
}

bool JsonReader::Int(int64_t* value) {
  *value = 0;
  const bool negative = Eat('-');
  Space();
  const size_t begin = at_;
  while (ok_ && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
    const int digit = negative ? '0' - text_[at_] : text_[at_] - '0';
    if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, digit, value)) return Fail();
    ++at_;
  }
  const bool fraction = at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
  return (ok_ && at_ > begin && !fraction) || Fail();
}

bool JsonReader::Skip() {
  std::string key;
  Space();
  if (!ok_ || at_ >= text_.size()) return Fail();
  const char c = text_[at_];
  if (c == '"') return String(&key);
  if (c == '{') {
    for (BeginObject(); NextKey(&key);) Skip();
    return ok_;
  }
  if (c == '[') {
    for (BeginArray(); NextElement();) Skip();
    return ok_;
  }
  for (std::string_view word : {"true", "false", "null"}) {
    if (text_.substr(at_, word.size()) != word) continue;
    at_ += word.size();
    return true;
  }
  const size_t end = text_.find_first_not_of("+-.0123456789eE", at_);
  if (end == at_) return Fail();
  at_ = end == std::string_view::npos ? text_.size() : end;
  return true;
}

bool JsonReader::AtEnd() {
  Space();
  return ok_ && depth_ == 0 && at_ == text_.size();
}

}  // namespace tilert::tool
