#include "frontend/parser.h"

#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "tests/golden.h"

namespace tilert::frontend {
namespace {

std::string Errors(const std::string& text) {
  const SourceFile source("test.py", text);
  Diagnostics diagnostics(&source);
  ParseModule(&diagnostics);
  return diagnostics.Render();
}

std::string Repeat(const std::string& part, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += part;
  return out;
}

TEST(Parser, AcceptsThePythonGrammar) { EXPECT_EQ(Errors(ReadSourceFile("tests/frontend/grammar.py")), ""); }

TEST(Parser, AcceptsOddLayouts) {
  for (const char* text : {"", "\n\n", "# only a comment", "x = 1", "\xEF\xBB\xBFx = 1\n", "if x:\n\ty\n\n\t# note\n\tz\n",
                           "x = (\n1,\n  # c\n2)\n", "x = 1 + \\\n  2\n", "if a: b; c;\n", "def f(): return 1\r\nx = 2\r\n",
                           "class A: pass\n\f\nx = 1\n", "if x:\n  y\n  \n # c\nz\n"}) {
    EXPECT_EQ(Errors(text), "") << text;
  }
}

struct Bad {
  const char* text;
  const char* message;
};

TEST(Parser, RefusesWithAPlace) {
  const Bad cases[] = {
      {"x = (1, 2", "test.py:1:5: error: '(' is never closed"},
      {"x = 1)\n", "test.py:1:6: error: ')' closes nothing"},
      {"x = [1, 2)\n", "test.py:1:10: error: ')' cannot close '['"},
      {"x = 'abc\ny = 2\n", "test.py:1:5: error: this string is not closed"},
      {"if x:\ny = 1\n", "test.py:2:1: error: expected an indented block, found 'y'"},
      {"if x:\n    y\n  z\n", "test.py:3:1: error: this indentation matches no outer block"},
      {"if x:\n\ty\n        z\n", "tabs and spaces are mixed"},
      {"x = = 2\n", "test.py:1:5: error: expected an expression, found '='"},
      {"for x on y:\n  pass\n", "test.py:1:7: error: expected 'in', found 'on'"},
      {"f(a b)\n", "test.py:1:5: error: expected ')', found 'b'"},
      {"1 = x\n", "test.py:1:1: error: cannot assign to this expression"},
      {"def f(:\n  pass\n", "test.py:1:7: error: expected a parameter name, found ':'"},
      {"x = 0xZ\n", "test.py:1:5: error: this is not a number"},
      {"x = a if b\n", "expected 'else'"},
      {"x = $\n", "test.py:1:5: error: this character has no meaning here"},
      {"f'{x'\n", "this string is not closed"},
      {"f'{}'\n", "expected an expression"},
      {"x = {1: 2, 3}\n", "a set and a dict cannot be mixed"},
      {"class = 3\n", "expected a class name"},
      {"try:\n  x\ny\n", "expected 'except' or 'finally'"},
      {"  x = 1\n", "test.py:1:1: error: expected a statement, found an indented line"},
  };
  for (const Bad& bad : cases)
    EXPECT_NE(Errors(bad.text).find(bad.message), std::string::npos) << bad.text << "\n" << Errors(bad.text);
}

TEST(Parser, ReportsSeveralErrorsAndTheCaret) {
  const std::string errors = Errors("x = = 1\ny = 2\ndef f():\n    z = )\n    w = 3\nq = 1 1\n");
  EXPECT_EQ(errors,
            "test.py:4:9: error: ')' closes nothing\n"
            "      z = )\n"
            "          ^\n"
            "  hint: remove it, or add the opening bracket\n"
            "test.py:1:5: error: expected an expression, found '='\n"
            "  x = = 1\n"
            "      ^\n"
            "test.py:4:10: error: expected an expression, found the end of the line\n"
            "      z = )\n"
            "           ^\n"
            "test.py:6:7: error: expected the end of the statement, found '1'\n"
            "  q = 1 1\n"
            "        ^\n");
}

TEST(Parser, ColumnsCountCodePoints) { EXPECT_NE(Errors("x = 'größe' 1\n").find("test.py:1:13:"), std::string::npos); }

// Whatever the text: an answer, no crash, in time that grows with its length.
TEST(Parser, SurvivesHostileText) {
  const int n = 100000;
  const std::string texts[] = {Repeat("(", n),
                               Repeat("[", n) + Repeat("]", n),
                               "x = " + Repeat("-", n) + "1\n",
                               "x = " + Repeat("not ", n) + "1\n",
                               "x = " + Repeat("lambda: ", n) + "1\n",
                               "x = " + Repeat("a if b else ", n) + "1\n",
                               "x = " + Repeat("a ** ", n) + "1\n",
                               "x = " + Repeat("1 + ", n) + "1\n",
                               "x = a" + Repeat(".b", n) + "\n",
                               "x = a" + Repeat("(1)", n) + "\n",
                               "x" + Repeat(" = x", n) + "\n",
                               Repeat("f'{", n),
                               Repeat("f'{f\"{", n / 2),
                               Repeat("if x:\n", 1000),
                               "if x:\n    y\n" + Repeat("elif x:\n    y\n", n / 10),
                               Repeat("x = (\n", n / 10),
                               Repeat("'", n),
                               Repeat("\\\n", n),
                               Repeat("\0", 1) + std::string(1000, '\0'),
                               Repeat("match x:\n case ", 2000),
                               Repeat("@", n),
                               Repeat("with (", 3000)};
  for (const std::string& text : texts) {
    const auto start = std::chrono::steady_clock::now();
    Errors(text);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << text.substr(0, 40);
  }
  std::string indented;
  for (int i = 0; i < 300; ++i) indented += std::string(i, ' ') + "if x:\n";
  EXPECT_NE(Errors(indented).find("levels of indentation"), std::string::npos);
}

}  // namespace
}  // namespace tilert::frontend
