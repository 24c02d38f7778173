#include "frontend/siblings.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "frontend/bindings.h"
#include "frontend/parser.h"

namespace tilert::frontend {
namespace {

constexpr size_t kMaxModules = 16;

bool IsIdentifierChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::set<std::string> Identifiers(std::string_view text) {
  std::set<std::string> found;
  for (size_t i = 0; i < text.size();) {
    if (!IsIdentifierChar(text[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && IsIdentifierChar(text[i])) ++i;
    found.emplace(text.substr(begin, i - begin));
  }
  return found;
}

// The names that a statement of a module binds; those in compound statements count as well.
void AddBound(const ast::Stmt& stmt, std::set<std::string>* names) {
  const auto add_all = [&](const ast::Body& body) {
    for (const ast::Stmt* inner : body) AddBound(*inner, names);
  };
  ForEachBoundName(stmt, [&](const std::string& name) { names->insert(name); });
  if (const auto* choice = stmt.As<ast::If>()) {
    add_all(choice->then);
    add_all(choice->otherwise);
  } else if (const auto* attempt = stmt.As<ast::Try>()) {
    add_all(attempt->body);
  } else if (const auto* loop = stmt.As<ast::For>()) {
    add_all(loop->body);
  } else if (const auto* with = stmt.As<ast::With>()) {
    add_all(with->body);
  }
}

// A statement of a module, and the text up to the next one.
struct Piece {
  const ast::Stmt* stmt;
  size_t part;
  std::set<std::string> bound, mentioned;
  bool needed = false;
};

class Picker {
 public:
  Picker(const SourceFile& source, const ast::Module& module) : source_(source) {
    for (size_t i = 0; i < module.body.size(); ++i) {
      const ast::Stmt* stmt = module.body[i];
      const size_t part = source.PartOf(stmt->range.begin);
      const bool is_last = i + 1 == module.body.size();
      const uint32_t end = is_last ? static_cast<uint32_t>(source.text().size()) : module.body[i + 1]->range.begin;
      Piece piece{stmt, part, {}, Identifiers(source.Text({stmt->range.begin, std::max(end, stmt->range.begin)}))};
      AddBound(*stmt, &piece.bound);
      pieces_.push_back(std::move(piece));
    }
  }

  void Run() {
    const size_t main = source_.parts() - 1;
    for (Piece& piece : pieces_) {
      if (piece.part != main) continue;
      piece.needed = true;
      Follow(piece);
    }
  }

  // True if a name of part `part` that is needed is bound in another part as well, other than by an import.
  bool Hides(size_t part) const {
    for (const Piece& piece : pieces_) {
      if (piece.part != part || !piece.needed || piece.stmt->As<ast::Import>()) continue;
      for (const Piece& other : pieces_) {
        if (other.part == part || !other.needed || other.stmt->As<ast::Import>()) continue;
        for (const std::string& name : other.bound) {
          if (piece.bound.contains(name)) return true;
        }
      }
    }
    return false;
  }

  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  // What is imported from siblings by `piece`, wherever the import stands.
  void Follow(const Piece& piece) {
    FollowImports({piece.stmt}, piece.part);
    if (piece.part + 1 == source_.parts()) return;
    for (const std::string& name : piece.mentioned) Need(piece.part, name);
  }

  void FollowImports(const ast::Body& body, size_t part) {
    for (const ast::Stmt* stmt : body) {
      if (const auto* import = stmt->As<ast::Import>()) {
        for (size_t from = 0; import->is_from && from + 1 < source_.parts(); ++from) {
          if (source_.ModuleOf(from) != ModuleName(*import)) continue;
          for (const ast::ImportName& name : import->names) Need(from, name.path);
        }
      } else if (const auto* function = stmt->As<ast::FunctionDef>()) {
        FollowImports(function->body, part);
      } else if (const auto* attempt = stmt->As<ast::Try>()) {
        FollowImports(attempt->body, part);
      }
    }
  }

  void Need(size_t part, const std::string& name) {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].needed || pieces_[i].part != part || !pieces_[i].bound.contains(name)) continue;
      pieces_[i].needed = true;
      Follow(pieces_[i]);
    }
  }

  const SourceFile& source_;
  std::vector<Piece> pieces_;
};

void Collect(const std::string& text, const std::string& module, const std::string& name, const ModuleReader& read,
             std::set<std::string>* seen, std::vector<SourcePart>* parts) {
  const SourceFile source(name, text);
  Diagnostics diagnostics(&source);
  const std::unique_ptr<ast::Module> tree = ParseModule(&diagnostics);
  if (!diagnostics.ok()) {
    if (module.empty()) parts->push_back({name, "", text});
    return;
  }
  for (const ast::Stmt* stmt : tree->body) {
    const auto* import = stmt->As<ast::Import>();
    const std::string from = import && import->is_from ? ModuleName(*import) : "";
    if (from.empty() || from.find('.') != std::string::npos || seen->size() >= kMaxModules || !seen->insert(from).second)
      continue;
    if (const std::optional<std::string> found = read(from)) Collect(*found, from, from + ".py", read, seen, parts);
  }
  parts->push_back({name, module, text});
}

}  // namespace

std::vector<SourcePart> WithSiblings(const std::string& text, const std::string& name, const ModuleReader& read) {
  std::vector<SourcePart> parts;
  std::set<std::string> seen;
  if (read) {
    Collect(text, "", name, read, &seen, &parts);
  } else {
    parts.push_back({name, "", text});
  }
  return parts;
}

void KeepImported(const SourceFile& source, ast::Module* module) {
  if (source.parts() == 1) return;
  Picker picker(source, *module);
  picker.Run();
  std::vector<bool> kept(source.parts(), true);
  for (size_t part = 0; part + 1 < source.parts(); ++part) {
    kept[part] = !picker.Hides(part);
    if (kept[part]) module->siblings.push_back(source.ModuleOf(part));
  }
  module->body.clear();
  for (const Piece& piece : picker.pieces()) {
    if (piece.needed && kept[piece.part]) module->body.push_back(piece.stmt);
  }
}

}  // namespace tilert::frontend
