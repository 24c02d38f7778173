#include "tools/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ir/limits.h"
#include "ir/status_util.h"
#include "tools/file.h"

namespace tilert::tool {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr uint32_t kMaxNpyHeader = 1 << 16;
constexpr size_t kAlignment = 64;

struct NpyType {
  DType dtype;
  const char* descr;
};
constexpr NpyType kNpyTypes[] = {
    {DType::kBool, "|b1"},   {DType::kInt8, "|i1"},    {DType::kInt16, "<i2"},   {DType::kInt32, "<i4"},
    {DType::kInt64, "<i8"},  {DType::kUInt8, "|u1"},   {DType::kUInt16, "<u2"},  {DType::kUInt32, "<u4"},
    {DType::kUInt64, "<u8"}, {DType::kFloat16, "<f2"}, {DType::kFloat32, "<f4"}, {DType::kFloat64, "<f8"},
};

struct NpyHeader {
  DType dtype = DType::kInvalid;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Reads the Python dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  absl::StatusOr<NpyHeader> Parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!Eat('{')) return Malformed();
    while (!Eat('}')) {
      const auto key = String();
      if (!key || !Eat(':')) return Malformed();
      bool* const seen = *key == "descr"           ? &has_descr
                         : *key == "fortran_order" ? &has_order
                         : *key == "shape"         ? &has_shape
                                                   : nullptr;
      if (seen == nullptr || *seen) return Malformed();
      *seen = true;
      if (seen == &has_descr) {
        TILERT_ASSIGN_OR_RETURN(header.dtype, Descr());
      } else if (seen == &has_order) {
        if (!Eat("True") && !Eat("False")) return Malformed();
        header.fortran_order = text_[at_ - 2] == 'u';
      } else if (!Shape(&header.shape)) {
        return Malformed();
      }
      if (!Eat(',') && Peek() != '}') return Malformed();
    }
    Space();
    if (at_ != text_.size() || !has_descr || !has_order || !has_shape) return Malformed();
    return header;
  }

 private:
  static absl::Status Malformed() { return InvalidArgument("the header is not that of a .npy file"); }

  void Space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char Peek() {
    Space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Eat(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool Eat(std::string_view word) {
    Space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }
  absl::StatusOr<DType> Descr() {
    const auto descr = String();
    if (!descr) return InvalidArgument("structured arrays are not supported");
    for (const NpyType& type : kNpyTypes) {
      const bool one_byte = type.descr[0] == '|';
      if (*descr == type.descr || (one_byte && descr->size() == 3 && descr->substr(1) == type.descr + 1)) return type.dtype;
    }
    return InvalidArgument("elements of type '", *descr, "' are not supported (little-endian bool, integers and floats are)");
  }
  bool Shape(std::vector<int64_t>* shape) {
    if (!Eat('(')) return false;
    while (!Eat(')')) {
      int64_t extent = 0;
      if (Peek() < '0' || Peek() > '9') return false;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        if (__builtin_mul_overflow(extent, 10, &extent) || __builtin_add_overflow(extent, text_[at_] - '0', &extent))
          return false;
        ++at_;
      }
      Eat('L');  // written by NumPy under Python 2
      if (shape->size() > kMaxRank) return false;
      shape->push_back(extent);
      if (!Eat(',') && Peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Array FromColumnMajor(const Array& array) {
  const size_t rank = array.shape.size(), size = static_cast<size_t>(DTypeBytes(array.dtype));
  Array result = array;
  std::vector<int64_t> coords(rank, 0);
  for (int64_t to = 0; to < array.elements(); ++to) {
    int64_t from = 0;
    for (size_t d = rank; d-- > 0;) from = from * array.shape[d] + coords[d];
    std::memcpy(&result.bytes[static_cast<size_t>(to) * size], &array.bytes[static_cast<size_t>(from) * size], size);
    for (size_t d = rank; d-- > 0 && ++coords[d] == array.shape[d];) coords[d] = 0;
  }
  return result;
}

absl::StatusOr<Array> Read(const InputFile& file) {
  uint8_t prefix[12] = {};
  if (file.size() < 10) return InvalidArgument("not a .npy file");
  TILERT_RETURN_IF_ERROR(file.Read(0, prefix, std::min<uint64_t>(sizeof prefix, file.size())));
  if (std::memcmp(prefix, kMagic.data(), kMagic.size()) != 0) return InvalidArgument("not a .npy file");
  const int version = prefix[6];
  if (version < 1 || version > 3) return InvalidArgument("version ", version, " of the .npy format is unknown");
  const size_t begin = version == 1 ? 10 : 12;
  uint32_t length = prefix[8] | uint32_t{prefix[9]} << 8;
  if (version > 1) length |= uint32_t{prefix[10]} << 16 | uint32_t{prefix[11]} << 24;
  if (length > kMaxNpyHeader || begin + length > file.size()) return InvalidArgument("the header is cut off or too long");
  std::string text(length, '\0');
  TILERT_RETURN_IF_ERROR(file.Read(begin, text.data(), length));
  TILERT_ASSIGN_OR_RETURN(const NpyHeader header, HeaderParser(text).Parse());
  TILERT_ASSIGN_OR_RETURN(const int64_t bytes, ByteSize(header.dtype, header.shape));
  const uint64_t data = file.size() - begin - length;
  if (data != static_cast<uint64_t>(bytes)) {
    return InvalidArgument("holds ", data, " bytes of data, its shape ", ShapeText(header.shape), " needs ", bytes);
  }
  TILERT_ASSIGN_OR_RETURN(Array array, MakeArray(header.dtype, header.shape));
  TILERT_RETURN_IF_ERROR(file.Read(begin + length, array.bytes.data(), array.bytes.size()));
  return header.fortran_order && array.shape.size() > 1 ? FromColumnMajor(array) : array;
}

}  // namespace

absl::StatusOr<Array> ReadNpy(const std::string& path) {
  TILERT_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  absl::StatusOr<Array> array = Read(file);
  if (!array.ok()) return absl::Status(array.status().code(), Cat(path, ": ", array.status().message()));
  return array;
}

std::string NpyBytes(const Array& array) {
  const DType stored = array.dtype == DType::kIndex ? DType::kInt64 : array.dtype;
  const auto* type =
      std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes), [stored](const NpyType& t) { return t.dtype == stored; });
  if (type == std::end(kNpyTypes)) return NpyBytes(Converted(array, DType::kFloat32));
  std::string shape;
  for (int64_t extent : array.shape) shape += Cat(shape.empty() ? "" : " ", extent, ",");
  std::string header = Cat("{'descr': '", type->descr, "', 'fortran_order': False, 'shape': (", shape, "), }");
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return bytes;
}

}  // namespace tilert::tool
