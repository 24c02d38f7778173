// The tilert command, driven as a user does.
#include <unistd.h>

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tool_runner.h"
#include "tools/npy.h"
#include "tools/safetensors.h"

namespace tilert {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const char* const kCommands[] = {"compile", "info", "verify", "print", "emit", "build", "run", "bench", "layout", "cache"};

std::string Source(const std::string& name) { return std::string(TILERT_SOURCE_DIR) + "/kernels/" + name; }

class ToolTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("TILERT_TOOL", TILERT_TOOL, 1); }

  std::string Path(const std::string& name) { return TestFolder() + "/" + name; }
  // A bundle of the float32 add kernel.
  std::string AddBundle() {
    const std::string path = Path("add.tilert");
    const ToolResult result = Tilert({"compile", Source("add.py"), "--set", "dtype=float32", "-o", path});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return path;
  }
  tool::Array Floats(const std::vector<float>& values) {
    tool::Array array = *tool::MakeArray(DType::kFloat32, {static_cast<int64_t>(values.size())});
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    return array;
  }
  std::string Npy(const std::string& name, const tool::Array& array) {
    WriteText(Path(name), tool::NpyBytes(array));
    return Path(name);
  }
};

// One message on standard error, and nothing else there.
MATCHER(IsOneMessage, "one message of the tool") {
  const std::string text = arg;
  return text.rfind("tilert: ", 0) == 0 && text.back() == '\n' && text.find("\ntilert: ") == std::string::npos;
}

TEST_F(ToolTest, HelpPages) {
  ToolResult result = Tilert({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  std::string pages = result.out;
  for (const char* command : kCommands) {
    result = Tilert({command, "--help"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, HasSubstr("\nexamples:\n  tilert " + std::string(command)));
    EXPECT_EQ(result.out, Tilert({"help", command}).out);
    pages += "\n----------------------------------------\n" + result.out;
  }
  ExpectGolden("tools/help.txt", pages);
}

TEST_F(ToolTest, WrongUseIsExitCode2) {
  const std::vector<std::vector<std::string>> calls = {
      {},
      {"frobnicate"},
      {"info"},
      {"info", "a", "b"},
      {"info", "--nonsense", "a"},
      {"compile", "a.py"},
      {"compile", "-o", "x"},
      {"compile", "a.py", "-o"},
      {"compile", "a.py", "-o", "x", "-o", "y"},
      {"verify", "kernel.py"},
      {"emit", "a.tilert", "--arch", "gfx90a"},
      {"emit", "a.tilert", "--general=yes"},
      {"run", "a.tilert", "--device", "tpu"},
      {"run", "a.tilert", "--arch", "sm_70"},
      {"bench", "a.tilert", "--repeat", "0"},
      {"bench", "a.tilert", "--repeat", "ten"},
      {"build", "a.tilert"},
      {"layout", "a.tilert", "--rows", "-3"},
      {"cache", "burn"},
  };
  for (const auto& call : calls) {
    const ToolResult result = Tilert(call);
    EXPECT_EQ(result.exit_code, 2) << testing::PrintToString(call) << result.err;
    EXPECT_THAT(result.err, HasSubstr("--help")) << testing::PrintToString(call);
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(ToolTest, CompileListsEntries) {
  const ToolResult result = Tilert({"compile", "--list", Source("gemm.py")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("gemm(A, B, block_M=128"));
}

TEST_F(ToolTest, CompileVerifyInfoPrint) {
  const std::string bundle = AddBundle();
  EXPECT_THAT(FilesIn(TestFolder()), ElementsAre("add.tilert"));  // no temporary files
  const ToolResult verify = Tilert({"verify", bundle});
  EXPECT_EQ(verify.exit_code, 0);
  EXPECT_THAT(verify.out, EndsWith(": ok, 1 program, 0 cubins\n"));
  const ToolResult info = Tilert({"info", bundle});
  EXPECT_EQ(info.exit_code, 0) << info.err;
  EXPECT_THAT(info.out, AllOf(HasSubstr("program add\n"), HasSubstr("in A: float32 [N]"), HasSubstr("out C: float32 [N]")));
  const ToolResult print = Tilert({"print", bundle});
  EXPECT_EQ(print.exit_code, 0) << print.err;
  EXPECT_THAT(print.out, HasSubstr("T.Kernel("));
  // What is printed is a source that says the same.
  WriteText(Path("printed.py"), print.out);
  ASSERT_EQ(Tilert({"compile", Path("printed.py"), "-o", Path("again.tilert")}).exit_code, 0);
  EXPECT_EQ(Tilert({"print", Path("again.tilert")}).out, print.out);
}

TEST_F(ToolTest, CompileIsReproducible) {
  const std::string bytes = ReadText(AddBundle());
  EXPECT_EQ(ReadText(AddBundle()), bytes);
}

TEST_F(ToolTest, CompileBySpec) {
  WriteText(Path("my.spec"), "# two of one\nsum_f32 = " + Source("add.py") + ":add dtype=float32\nsum_f16 = " + Source("add.py") +
                                 ":add dtype=float16\n");
  const ToolResult result = Tilert({"compile", "--spec", Path("my.spec"), "--meta", "origin=test", "-o", Path("two.tilert")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string info = Tilert({"info", Path("two.tilert")}).out;
  EXPECT_THAT(info, AllOf(HasSubstr("metadata origin = test"), HasSubstr("program sum_f32"), HasSubstr("program sum_f16")));
  // Several programs: one must be chosen.
  const ToolResult emit = Tilert({"emit", Path("two.tilert")});
  EXPECT_EQ(emit.exit_code, 2);
  EXPECT_THAT(emit.err, HasSubstr("'sum_f32', 'sum_f16'"));
  WriteText(Path("bad.spec"), "ok = a.py:f\nnonsense\n");
  const ToolResult bad = Tilert({"compile", "--spec", Path("bad.spec"), "-o", Path("bad.tilert")});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.err, HasSubstr("bad.spec:2: expected"));
}

TEST_F(ToolTest, BadSourcesShowTheLineAndWriteNothing) {
  const std::pair<const char*, const char*> sources[] = {
      {"import tilelang.language as T\n\n@T.prim_func\ndef f(A: T.Tensor((4,), T.float32)):\n    with T.Kernel(1, threads=32) as "
       "bx\n        A[0] = 1.0\n",
       "bad.py:5:"},
      {"import tilelang.language as T\n\n@T.prim_func\ndef f(A: T.Tensor((4,), T.float32)):\n    with T.Kernel(1, threads=32) as "
       "bx:\n        A[0] = undefined_name\n",
       "bad.py:6:"},
      {"import tilelang.language as T\n\n@T.prim_func\ndef f(A: T.Tensor((4,), T.float32)):\n    with T.Kernel(1, threads=32) as "
       "bx:\n        T.warble(A)\n",
       "bad.py:6:"},
  };
  for (const auto& [text, place] : sources) {
    WriteText(Path("bad.py"), text);
    const ToolResult result = Tilert({"compile", Path("bad.py"), "-o", Path("bad.tilert")});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.err, AllOf(StartsWith(place), HasSubstr(" error: "), HasSubstr("^")));
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(FilesIn(TestFolder()), ElementsAre("bad.py"));
  }
  WriteText(Path("none.py"), "x = 1\n");
  EXPECT_THAT(Tilert({"compile", Path("none.py"), "-o", Path("bad.tilert")}).err, HasSubstr("no kernel in it"));
}

TEST_F(ToolTest, BadBundlesAreOneMessage) {
  const std::string bundle = AddBundle(), good = ReadText(bundle);
  std::vector<std::string> bad = {
      "", "x", good.substr(0, 63), good.substr(0, good.size() / 2), good + "y", std::string(200, 'z')};
  for (size_t at = 0; at < good.size(); at += good.size() / 16 + 1) {
    bad.push_back(good);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ 0x20);
  }
  for (const std::string& bytes : bad) {
    WriteText(Path("bad.tilert"), bytes);
    for (const char* command : {"verify", "info", "emit"}) {
      const ToolResult result = Tilert({command, Path("bad.tilert")});
      EXPECT_EQ(result.exit_code, 1) << command;
      EXPECT_THAT(result.err, IsOneMessage());
      EXPECT_THAT(result.err, HasSubstr("bad.tilert"));
      EXPECT_EQ(result.out, "");
    }
  }
  const ToolResult none = Tilert({"verify", Path("nowhere.tilert")});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, AllOf(IsOneMessage(), HasSubstr("nowhere.tilert: cannot open")));
  EXPECT_EQ(Tilert({"verify", TestFolder()}).exit_code, 1);  // a folder
}

TEST_F(ToolTest, RunOnFiles) {
  const std::string bundle = AddBundle();
  const std::vector<float> a = {1, 2, 3.5f, -4, 5}, b = {10, 20, 30, 40, 0.25f};
  std::vector<float> sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  WriteText(Path("w.safetensors"), tool::SafetensorsBytes({{"layer.b", Floats(b)}}));
  const ToolResult result =
      Tilert({"run", bundle, "--in", "A=" + Npy("a.npy", Floats(a)), "--in", "B=" + Path("w.safetensors") + ":layer.b", "--out",
              "C=" + Path("c.npy"), "--device", "cpu", "--check"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(tool::ReadNpy(Path("c.npy"))->bytes, Floats(sum).bytes);
  EXPECT_THAT(result.out, HasSubstr("C: float32 [5], min "));
  // Into a safetensors file, straight from a source.
  const ToolResult other = Tilert({"run", Source("add.py"), "--set", "dtype=float32", "--in", "A=" + Path("a.npy"), "--in",
                                   "B=" + Path("w.safetensors") + ":layer.b", "--out", "C=" + Path("out.safetensors") + ":sum"});
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(tool::ReadSafetensor(Path("out.safetensors"), "sum")->bytes, Floats(sum).bytes);
}

TEST_F(ToolTest, RunOnRandomNumbers) {
  const std::string bundle = AddBundle();
  EXPECT_EQ(Tilert({"run", bundle, "--random", "--dim", "N=1000", "--out", "C=" + Path("1.npy")}).exit_code, 0);
  EXPECT_EQ(Tilert({"run", bundle, "--random", "--dim", "N=1000", "--out", "C=" + Path("2.npy")}).exit_code, 0);
  EXPECT_EQ(Tilert({"run", bundle, "--random", "--dim", "N=1000", "--seed", "9", "--out", "C=" + Path("3.npy")}).exit_code, 0);
  EXPECT_EQ(ReadText(Path("1.npy")), ReadText(Path("2.npy")));
  EXPECT_NE(ReadText(Path("1.npy")), ReadText(Path("3.npy")));
  EXPECT_EQ(Tilert({"run", bundle, "--random", "--dim", "N=0"}).exit_code, 0);
}

TEST_F(ToolTest, SimulatorAgreesWithTheExecutor) {
  const ToolResult result = Tilert({"run", AddBundle(), "--random", "--dim", "N=2311", "--device", "sim", "--check"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("C: largest difference from the executor 0"));
}

TEST_F(ToolTest, BadArgumentsOfARun) {
  const std::string bundle = AddBundle(), a = Npy("a.npy", Floats({1, 2, 3})), b = Npy("b.npy", Floats({1, 2, 3, 4}));
  tool::Array halves = tool::Converted(Floats({1, 2, 3}), DType::kFloat16), matrix = *tool::MakeArray(DType::kFloat32, {3, 1});
  const std::string out = "C=" + Path("c.npy");
  struct Call {
    std::vector<std::string> arguments;
    int exit_code;
    const char* message;
  };
  const Call calls[] = {
      {{"--in", "A=" + a}, 2, "the input 'B' is missing"},
      {{"--in", "A=" + a, "--in", "Z=" + a}, 2, "has no tensor 'Z'"},
      {{"--in", "A=" + a, "--in", "C=" + a}, 2, "'C' is an output"},
      {{"--in", "A=" + a, "--in", "A=" + a}, 2, "'A' twice"},
      {{"--in", "A=" + a, "--in", "B=x.csv"}, 2, "neither FILE.npy nor"},
      {{"--in", "A=" + a, "--in", "B"}, 2, "NAME=VALUE"},
      {{"--random", "--dim", "N=3", "--out", "C=" + Path("c.csv")}, 2, "neither FILE.npy nor"},
      {{"--random", "--dim", "N=3", "--tolerance", "nan"}, 2, "a number of at least 0"},
      {{"--random", "--dim", "N=3", "--tolerance", "-1"}, 2, "a number of at least 0"},
      {{"--random"}, 2, "--dim NAME=N"},
      {{"--random", "--dim", "Q=3"}, 2, "has no dim 'Q'"},
      {{"--random", "--dim", "N=-1"}, 2, "negative"},
      {{"--random", "--dim", "N=3", "--scalar", "eps=1"}, 2, "no scalar 'eps'"},
      {{"--random", "--dim", "N=1099511627776"}, 1, "this machine has"},
      {{"--random", "--dim", "N=4611686018427387904"}, 1, "too large"},
      {{"--in", "A=" + a, "--in", "B=" + b}, 1, "B"},
      {{"--in", "A=" + a, "--in", "B=" + Path("none.npy")}, 1, "none.npy: cannot open"},
      {{"--in", "A=" + a, "--in", "B=" + Npy("h.npy", halves)}, 1, "float16"},
      {{"--in", "A=" + a, "--in", "B=" + Npy("m.npy", matrix)}, 1, "2 dimensions"},
  };
  for (const Call& call : calls) {
    std::vector<std::string> arguments = {"run", bundle, "--out", out};
    arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
    const ToolResult result = Tilert(arguments);
    EXPECT_EQ(result.exit_code, call.exit_code) << testing::PrintToString(call.arguments) << result.err;
    EXPECT_THAT(result.err, AllOf(IsOneMessage(), HasSubstr(call.message)));
    EXPECT_FALSE(Exists(Path("c.npy")));
  }
  const ToolResult unwritable = Tilert({"run", bundle, "--in", "A=" + a, "--in", "B=" + a, "--out", "C=/nonexistent/c.npy"});
  EXPECT_EQ(unwritable.exit_code, 1);
  EXPECT_THAT(unwritable.err, HasSubstr("/nonexistent/c.npy: cannot create"));
}

TEST_F(ToolTest, ScalarsMustFitTheirType) {
  WriteText(Path("copies.py"),
            "import tilelang.language as T\n"
            "@T.prim_func\n"
            "def copies(A: T.Tensor((4,), \"int32\"), B: T.Tensor((4,), \"int32\"), n: T.int32, u: T.uint8):\n"
            "    with T.Kernel(n, u, threads=32) as (bx, by):\n"
            "        T.copy(A, B)\n");
  const auto run = [&](const char* n, const char* u) {
    return Tilert({"run", Path("copies.py"), "--random", "--scalar", std::string("n=") + n, "--scalar", std::string("u=") + u});
  };
  EXPECT_EQ(run("3", "255").exit_code, 0);
  const std::pair<const char*, const char*> calls[] = {{"4294967297", "1"}, {"1", "256"}, {"1", "-1"}, {"2147483648", "1"}};
  for (const auto& [n, u] : calls) {
    const ToolResult result = run(n, u);
    EXPECT_EQ(result.exit_code, 2) << n << " " << u;
    EXPECT_THAT(result.err, HasSubstr("does not fit"));
  }
}

TEST_F(ToolTest, NamesThatAreRefusedHaveAPlace) {
  const std::string a = "A: T.Tensor((4,), \"int32\")";
  const std::string head = "import tilelang.language as T\n@T.prim_func\ndef k(" + a + ", " + a + "):\n";
  WriteText(Path("a.py"), head + "    with T.Kernel(1):\n        A[0] = 1\n");
  EXPECT_THAT(Tilert({"compile", Path("a.py"), "-o", Path("x")}).err, HasSubstr("a.py:3:38: error: tensor 'A' has the name"));
}

// What is no regular file is written into, not replaced.
TEST_F(ToolTest, OutputsMayBeDevices) {
  const std::string link = Path("full");  // a name that may be replaced, if need be, in place of the device
  ASSERT_EQ(symlink("/dev/full", link.c_str()), 0);
  const ToolResult result = Tilert({"compile", Source("add.py"), "-o", link});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(IsOneMessage(), HasSubstr("cannot write: No space left on device")));
  EXPECT_THAT(FilesIn(TestFolder()), ElementsAre("full"));
  EXPECT_EQ(Tilert({"compile", Source("add.py"), "-o", TestFolder()}).exit_code, 1);
  EXPECT_EQ(Tilert({"--version"}).out.substr(0, 7), "tilert ");
}

TEST_F(ToolTest, EmitAndLayout) {
  const std::string bundle = AddBundle();
  const ToolResult source = Tilert({"emit", bundle, "--arch", "sm_80"});
  ASSERT_EQ(source.exit_code, 0) << source.err;
  EXPECT_THAT(source.out, AllOf(HasSubstr("extern \"C\""), Not(HasSubstr("#include"))));
  EXPECT_EQ(Tilert({"emit", bundle, "--arch", "sm_80"}).out, source.out);
  EXPECT_NE(Tilert({"emit", bundle, "--arch", "sm_80", "--general"}).out, source.out);
  EXPECT_THAT(Tilert({"emit", bundle, "--kernel-ir"}).out, HasSubstr("kernel "));
  EXPECT_EQ(Tilert({"emit", bundle, "--print-after", "no_such_pass"}).exit_code, 2);
  const ToolResult all = Tilert({"emit", bundle, "--print-after", "all"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_GT(all.out.size(), 100u);

  EXPECT_THAT(Tilert({"layout", bundle}).out, HasSubstr("  a: float32 2048 ("));
  const ToolResult text = Tilert({"layout", bundle, "a", "--rows", "2"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("thread = 32*warp + lane"));
  EXPECT_EQ(Tilert({"layout", bundle, "a", "--svg", "-o", Path("a.svg")}).exit_code, 0);
  EXPECT_THAT(ReadText(Path("a.svg")), AllOf(StartsWith("<svg "), EndsWith("</svg>\n")));
  const ToolResult none = Tilert({"layout", bundle, "zebra"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("no tile 'zebra'"));
}

// The kernels that a program becomes, in the simulator.
TEST_F(ToolTest, EmitSimulates) {
  const std::string bundle = AddBundle();
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const ToolResult dynamic =
        Tilert({"emit", bundle, "--arch", arch, "--simulate", "--extent", "N=2311", "--interleavings", "3"});
    EXPECT_EQ(dynamic.exit_code, 0) << dynamic.err;
    EXPECT_THAT(dynamic.out, AllOf(HasSubstr(std::string(arch) + ": 3 interleavings, no fault found"),
                                   HasSubstr("C: largest difference from the executor 0"), Not(HasSubstr("extern \"C\""))));
  }
  EXPECT_EQ(Tilert({"emit", bundle, "--simulate", "--dim", "N=64", "--seed", "5", "--general"}).exit_code, 0);
  const std::string a = Npy("a.npy", Floats({1, 2, 3})), b = Npy("b.npy", Floats({1, 2, 4}));
  EXPECT_EQ(Tilert({"emit", bundle, "--simulate", "--in", "A=" + a, "--in", "B=" + b}).exit_code, 0);
  const ToolResult product = Tilert({"emit", Source("gemm.py"), "--entry", "gemm", "--arch", "sm_90a", "--set", "block_M=64",
                                     "--set", "block_N=64", "--simulate", "--interleavings", "1", "--extent", "M=65", "--extent",
                                     "N=72", "--extent", "K=40"});
  EXPECT_EQ(product.exit_code, 0) << product.err;
  const std::vector<std::pair<std::vector<std::string>, const char*>> wrong = {
      {{"--simulate"}, "--extent NAME=N"},
      {{"--simulate", "--extent", "Z=3"}, "no dim 'Z'"},
      {{"--simulate", "--dim", "N=64", "--extent", "N=65"}, "the code is for N=64 only"},
      {{"--simulate", "--extent", "N=64", "--kernel-ir"}, "leave out --kernel-ir"},
      {{"--simulate", "--extent", "N=64", "--interleavings", "0"}, "--interleavings needs a whole number"},
      {{"--seed", "3"}, "--seed belongs to --simulate"},
  };
  for (const auto& [arguments, message] : wrong) {
    std::vector<std::string> words = {"emit", bundle};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const ToolResult result = Tilert(words);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

// What it finds is shown in the source, and told by the place alone where only the bundle is there.
TEST_F(ToolTest, EmitSimulateShowsFaultsInTheSource) {
  const std::string source = Path("faults.py");
  WriteText(source,
            "import tilelang.language as T\n"
            "@T.prim_func\n"
            "def race(B: T.Tensor((4,), \"int32\")):\n"
            "    with T.Kernel(4, threads=32) as bx:\n"
            "        B[0] = bx\n"
            "@T.prim_func\n"
            "def hang(B: T.Tensor((4,), \"int32\")):\n"
            "    with T.Kernel(1, threads=64) as bx:\n"
            "        bar = T.alloc_barrier(65)\n"
            "        T.barrier_arrive(bar)\n"
            "        T.barrier_wait(bar, 0)\n"
            "        B[0] = 1\n"
            "@T.prim_func\n"
            "def unwritten(B: T.Tensor((64,), \"int32\")):\n"
            "    with T.Kernel(1, threads=64) as bx:\n"
            "        s = T.alloc_shared((64,), \"int32\")\n"
            "        T.copy(s, B)\n");
  struct Fault {
    const char *entry, *place, *line, *message;
  };
  for (const Fault& fault : {Fault{"race", "faults.py:5:9: error: ", "B[0] = bx\n          ^", "not ordered before it"},
                             Fault{"hang", "faults.py:11:9: error: ", "T.barrier_wait(bar, 0)\n          ^", "deadlock: "},
                             Fault{"unwritten", "faults.py:17:9: error: ", "T.copy(s, B)\n          ^", "never written"}}) {
    const ToolResult result = Tilert({"emit", source, "--entry", fault.entry, "--simulate"});
    EXPECT_EQ(result.exit_code, 1) << fault.entry;
    EXPECT_EQ(result.out, "") << fault.entry;
    EXPECT_THAT(result.err, AllOf(StartsWith(fault.place), HasSubstr(fault.line),
                                  HasSubstr(fault.message), HasSubstr("(seed 1, interleaving ")));
    const std::string bundle = Path(std::string(fault.entry) + ".tilert");
    EXPECT_EQ(Tilert({"compile", source, "--entry", fault.entry, "-o", bundle}).exit_code, 0);
    const ToolResult from_bundle = Tilert({"emit", bundle, "--simulate"});
    EXPECT_EQ(from_bundle.exit_code, 1);
    EXPECT_THAT(from_bundle.err, AllOf(StartsWith(fault.place), HasSubstr(fault.message)));
  }
}

// A knob of the schedule goes from --set through the bundle into the plan.
TEST_F(ToolTest, StagesOfAPipelineAreAKnob) {
  const std::string bundle = Path("gemm.tilert");
  const ToolResult made = Tilert({"compile", Source("gemm.py"), "--set", "num_stages=[4,2,3]", "-o", bundle});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(Tilert({"info", bundle}).out, HasSubstr("constant num_stages = [4, 2, 3]"));
  EXPECT_THAT(Tilert({"emit", bundle, "--report"}).out, HasSubstr("4 versions"));
  EXPECT_THAT(Tilert({"emit", bundle, "--report", "--set", "num_stages=2"}).out, HasSubstr("2 versions"));
  const ToolResult bad = Tilert({"emit", bundle, "--set", "num_stages=5"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.err, HasSubstr("5 is no candidate of constant num_stages"));
}

TEST_F(ToolTest, WithoutCudaItSaysSo) {
  const std::string bundle = AddBundle();
  const std::map<std::string, std::string> nothing = {{"TILERT_LIBCUDA", "/nonexistent/libcuda.so.1"},
                                                      {"TILERT_LIBNVRTC", "/nonexistent/libnvrtc.so"}};
  const ToolResult run =
      Tilert({"run", bundle, "--random", "--dim", "N=8", "--device", "cuda", "--out", "C=" + Path("c.npy")}, nothing);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("/nonexistent/libcuda.so.1"));
  EXPECT_FALSE(Exists(Path("c.npy")));
  EXPECT_EQ(Tilert({"bench", bundle, "--random", "--dim", "N=8"}, nothing).exit_code, 1);
  const std::string before = ReadText(bundle);
  const ToolResult build = Tilert({"build", bundle, "--arch", "sm_80,sm_90a"}, nothing);
  EXPECT_EQ(build.exit_code, 1);
  EXPECT_THAT(build.err, HasSubstr("/nonexistent/libnvrtc.so"));
  EXPECT_EQ(ReadText(bundle), before);
}

// On a driver that loads code and runs nothing: what the program should have written stays NaN.
TEST_F(ToolTest, OnADriverThatComputesNothing) {
  const std::string bundle = AddBundle(), tool = TILERT_TOOL;
  const std::map<std::string, std::string> fake = {{"TILERT_LIBCUDA", tool.substr(0, tool.rfind('/')) + "/fake_libcuda.so"},
                                                   {"TILERT_CACHE_DIR", Path("cache")}};
  const std::vector<std::string> call = {"run",  bundle,  "--random",          "--dim", "N=100", "--device",
                                         "cuda", "--out", "C=" + Path("c.npy")};
  const ToolResult run = Tilert(call, fake);
  if (run.exit_code == 1 && run.err.find("nvrtc") != std::string::npos) GTEST_SKIP() << run.err;
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("C: float32 [100], no finite element, 100 NaN"));
  EXPECT_TRUE(Exists(Path("c.npy")));
  const ToolResult list = Tilert({"cache", "list"}, fake);
  EXPECT_THAT(list.out, AllOf(HasSubstr("  program "), HasSubstr("cache: 2 entries, ")));
  std::vector<std::string> checked = call;
  checked.back() = "C=" + Path("checked.npy");
  checked.push_back("--check");
  const ToolResult check = Tilert(checked, fake);
  EXPECT_EQ(check.exit_code, 1);
  EXPECT_THAT(check.err, HasSubstr("'C' differs from the executor in 100 of 100 elements; worst at [0]: nan instead of "));
  EXPECT_FALSE(Exists(Path("checked.npy")));
  const ToolResult bench = Tilert({"bench", bundle, "--random", "--dim", "N=100", "--repeat", "2"}, fake);
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_THAT(bench.out, HasSubstr("0 compiles"));
  EXPECT_THAT(Tilert({"cache", "clear"}, fake).out, HasSubstr(": freed "));
  EXPECT_THAT(Tilert({"cache", "list"}, fake).out, HasSubstr("cache: 0 entries, "));
}

// Cubins for two architectures into the bundle; again, they replace those that are there.
TEST_F(ToolTest, BuildPutsCubinsIntoTheBundle) {
  const std::string bundle = AddBundle();
  const ToolResult build = Tilert({"build", bundle, "--arch", "sm_80,sm_90a", "-o", Path("built.tilert")});
  if (build.exit_code == 1 && build.err.find("nvrtc") != std::string::npos) GTEST_SKIP() << build.err;
  ASSERT_EQ(build.exit_code, 0) << build.err;
  EXPECT_THAT(build.out, HasSubstr("built.tilert: 4 cubins, "));
  EXPECT_THAT(Tilert({"verify", Path("built.tilert")}).out, EndsWith(": ok, 1 program, 4 cubins\n"));
  EXPECT_THAT(Tilert({"info", Path("built.tilert")}).out,
              AllOf(HasSubstr("cubin add for sm_80: "), HasSubstr("cubin add for sm_90a: ")));
  const std::string bytes = ReadText(Path("built.tilert"));
  ASSERT_EQ(Tilert({"build", Path("built.tilert"), "--arch", "sm_80,sm_90a"}).exit_code, 0);
  EXPECT_EQ(ReadText(Path("built.tilert")), bytes);
}

TEST_F(ToolTest, BenchOnTheCpu) {
  const ToolResult result = Tilert({"bench", AddBundle(), "--random", "--dim", "N=1000", "--device", "cpu", "--repeat", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("add on cpu: median "));
}

TEST_F(ToolTest, CacheOfAFolder) {
  const ToolResult list = Tilert({"cache", "list", "--dir", Path("cache")});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("0 entries, 0 bytes"));
  const ToolResult clear = Tilert({"cache", "clear"}, {{"TILERT_CACHE_DIR", Path("cache")}});
  EXPECT_EQ(clear.exit_code, 0) << clear.err;
  EXPECT_THAT(clear.out, HasSubstr("freed 0 bytes"));
  EXPECT_EQ(Tilert({"cache", "list"}, {{"TILERT_CACHE_DIR", ""}}).exit_code, 1);
}

}  // namespace
}  // namespace tilert
