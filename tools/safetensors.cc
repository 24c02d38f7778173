#include "tools/safetensors.h"

#include <algorithm>

#include "ir/limits.h"
#include "ir/status_util.h"
#include "tools/file.h"
#include "tools/json_reader.h"
#include "tools/names.h"

namespace tilert::tool {
namespace {

constexpr uint64_t kMaxHeader = 100000000;  // the format's own limit

struct SafetensorType {
  DType dtype;
  const char* name;
};
constexpr SafetensorType kTypes[] = {
    {DType::kBool, "BOOL"},          {DType::kInt8, "I8"},
    {DType::kInt16, "I16"},          {DType::kInt32, "I32"},
    {DType::kInt64, "I64"},          {DType::kUInt8, "U8"},
    {DType::kUInt16, "U16"},         {DType::kUInt32, "U32"},
    {DType::kUInt64, "U64"},         {DType::kFloat16, "F16"},
    {DType::kBFloat16, "BF16"},      {DType::kFloat32, "F32"},
    {DType::kFloat64, "F64"},        {DType::kFloat8E4M3, "F8_E4M3"},
    {DType::kFloat8E5M2, "F8_E5M2"},
};

struct Entry {
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t begin = -1, end = -1;
};

bool ReadEntry(JsonReader* json, Entry* entry) {
  std::string key;
  for (json->BeginObject(); json->NextKey(&key);) {
    if (key == "dtype") {
      json->String(&entry->dtype);
    } else if (key == "shape") {
      for (json->BeginArray(); json->NextElement();) {
        if (entry->shape.size() > kMaxRank || !json->Int(&entry->shape.emplace_back())) return false;
      }
    } else if (key == "data_offsets") {
      json->BeginArray();
      if (!json->NextElement() || !json->Int(&entry->begin) || !json->NextElement() || !json->Int(&entry->end) ||
          json->NextElement())
        return false;
    } else {
      json->Skip();
    }
  }
  return json->ok();
}

absl::StatusOr<std::map<std::string, Entry>> ReadHeader(std::string_view text) {
  std::map<std::string, Entry> entries;
  JsonReader json(text);
  std::string name;
  for (json.BeginObject(); json.NextKey(&name);) {
    if (name == "__metadata__") {
      json.Skip();
      continue;
    }
    const auto [at, added] = entries.emplace(name, Entry{});
    if (!added) return InvalidArgument("tensor '", name, "' is listed twice");
    if (!ReadEntry(&json, &at->second)) break;
  }
  if (!json.AtEnd()) return InvalidArgument("the header is not that of a safetensors file");
  return entries;
}

std::vector<std::string> Names(const std::map<std::string, Entry>& entries) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries) names.push_back(name);
  return names;
}

absl::StatusOr<std::map<std::string, Entry>> Read(const InputFile& file, uint64_t* data) {
  uint8_t prefix[8];
  if (file.size() < sizeof prefix) return InvalidArgument("not a safetensors file");
  TILERT_RETURN_IF_ERROR(file.Read(0, prefix, sizeof prefix));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | prefix[i];
  if (length > kMaxHeader || length > file.size() - sizeof prefix)
    return InvalidArgument("not a safetensors file, or cut off within its header");
  std::string text(length, '\0');
  TILERT_RETURN_IF_ERROR(file.Read(sizeof prefix, text.data(), text.size()));
  *data = sizeof prefix + length;
  return ReadHeader(text);
}

absl::StatusOr<Array> Read(const InputFile& file, const std::string& tensor) {
  uint64_t data = 0;
  TILERT_ASSIGN_OR_RETURN(const auto entries, Read(file, &data));
  const auto found = entries.find(tensor);
  if (found == entries.end()) {
    return absl::NotFoundError(Cat("no tensor '", tensor, "'; there are ", SomeNames(Names(entries), tensor)));
  }
  const Entry& entry = found->second;
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const SafetensorType& t) { return entry.dtype == t.name; });
  if (type == std::end(kTypes)) return InvalidArgument("tensor '", tensor, "' has the unsupported type '", entry.dtype, "'");
  TILERT_ASSIGN_OR_RETURN(const int64_t needed, ByteSize(type->dtype, entry.shape));
  const bool inside = entry.begin >= 0 && entry.begin <= entry.end && static_cast<uint64_t>(entry.end) <= file.size() - data;
  if (!inside || entry.end - entry.begin != needed) {
    return InvalidArgument("tensor '", tensor, "' is at bytes ", entry.begin, " to ", entry.end, " of ", file.size() - data,
                           "; its shape ", ShapeText(entry.shape), " needs ", needed);
  }
  TILERT_ASSIGN_OR_RETURN(Array array, MakeArray(type->dtype, entry.shape));
  TILERT_RETURN_IF_ERROR(file.Read(data + static_cast<uint64_t>(entry.begin), array.bytes.data(), array.bytes.size()));
  return array;
}

absl::Status InFile(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), Cat(path, ": ", status.message()));
}

std::string Quoted(const std::string& text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += Cat("\\u00", std::string(1, kDigits[c >> 4]), std::string(1, kDigits[c & 15]));
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace

absl::StatusOr<Array> ReadSafetensor(const std::string& path, const std::string& tensor) {
  TILERT_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  absl::StatusOr<Array> array = Read(file, tensor);
  if (!array.ok()) return InFile(path, array.status());
  return array;
}

absl::StatusOr<std::string> OtherSafetensors(const std::string& path, const std::vector<std::string>& tensors) {
  TILERT_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  uint64_t data = 0;
  auto entries = Read(file, &data);
  if (!entries.ok()) return InFile(path, entries.status());
  for (const std::string& tensor : tensors) entries->erase(tensor);
  return entries->empty() ? "" : SomeNames(Names(*entries));
}

std::string SafetensorsBytes(const std::map<std::string, Array>& tensors) {
  std::string header = "{";
  std::string data;
  for (const auto& [name, array] : tensors) {
    const DType stored = array.dtype == DType::kIndex ? DType::kInt64 : array.dtype;
    const auto* type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [stored](const SafetensorType& t) { return t.dtype == stored; });
    header += Cat(data.empty() && header.size() == 1 ? "" : ",", Quoted(name), ":{\"dtype\":\"", type->name, "\",\"shape\":[");
    for (size_t d = 0; d < array.shape.size(); ++d) header += Cat(d > 0 ? "," : "", array.shape[d]);
    header += Cat("],\"data_offsets\":[", data.size(), ",", data.size() + array.bytes.size(), "]}");
    data.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

}  // namespace tilert::tool
