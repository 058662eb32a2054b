// Every verb that needs no Python, through the real binary.
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "cli_fixture.h"

namespace kerntrail {
namespace {

namespace fs = std::filesystem;
using testing::Cli;
using testing::Outcome;

TEST_F(Cli, FormatsAreTheGoldenOnes) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"matrix", capture()}, "matrix.md"},
      {{"matrix", capture(), "--format", "json"}, "matrix.json"},
      {{"matrix", capture(), "--format=csv"}, "matrix.csv"},
      {{"lineage", capture()}, "lineage.txt"},
      {{"lineage", capture(), "--format", "md"}, "lineage.md"},
      {{"lineage", capture(), "--format", "mermaid"}, "lineage.mmd"},
      {{"lineage", capture(), "--format", "dot"}, "lineage.dot"},
      {{"lineage", capture(), "--format", "json"}, "lineage.json"},
      {{"drops", capture()}, "drops.md"},
      {{"drops", capture(), "--by", "line"}, "drops_by_line.md"},
      {{"drops", capture(), "--by=unit"}, "drops_by_unit.md"},
      {{"drops", capture(), "--format", "json"}, "drops.json"},
      {{"report", capture()}, "report.md"},
      {{"report", capture(), "--format", "json"}, "report.json"},
  };
  for (const auto& [arguments, file] : cases) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, 0) << file << outcome.err;
    EXPECT_EQ(outcome.out, golden("seed000/" + file)) << file;
    EXPECT_EQ(outcome.err, "") << file;
  }
  EXPECT_EQ(run({"export", "--format", "raw", capture()}).out, golden("seed000/raw.json") + "\n");
}

TEST_F(Cli, DropsNamesPassesAndLines) {
  const Outcome passes = run({"drops", capture("lossy_passes")});
  EXPECT_EQ(passes.exit, 0) << passes.err;
  EXPECT_EQ(passes.out, golden("lossy_passes/drops.md"));
  EXPECT_EQ(run({"drops", capture("lossy_passes"), "--by", "line"}).out, golden("lossy_passes/drops_by_line.md"));
  const Outcome field = run({"drops", capture("lossy_passes"), "--by", "field", "--stages", "fx_post_grad"});
  EXPECT_NE(field.out.find("## `stack_trace`"), std::string::npos) << field.out;
  EXPECT_EQ(field.out.find("ir_post_pass"), std::string::npos);
  const Outcome borders = run({"drops", capture()});
  EXPECT_NE(borders.out.find("Passes were not recorded (level `borders`)"), std::string::npos);
  const Outcome clean = run({"drops", capture(), "--stages", "fx_pre_grad"});
  EXPECT_NE(clean.out.find("**Nothing was lost in the stages shown.** Examined: 10 fields of fx_pre_grad (3 units)"),
            std::string::npos)
      << clean.out;
  EXPECT_EQ(run({"drops", capture(), "--by", "kernel"}).exit, 2);
}

TEST_F(Cli, AnalyseBeginsWithWhatChanged) {
  const std::string data = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/captures/";
  const Outcome plain = run({"analyse", data + "reference_full.ndjson.gz"});
  EXPECT_EQ(plain.exit, 0) << plain.err;
  EXPECT_EQ(plain.out.find("## Changes since"), std::string::npos);
  EXPECT_NE(plain.out.find("## Field semantics"), std::string::npos);
  const Outcome against =
      run({"analyse", data + "reference_full.ndjson.gz", "--against", data + "reference_seed.ndjson.gz"});
  EXPECT_EQ(against.exit, 0) << against.err;
  EXPECT_NE(against.out.find("## Changes since the previous run"), std::string::npos);
  EXPECT_NE(against.out.find("mm_default_1"), std::string::npos);
  EXPECT_LT(against.out.find("mm_default_1"), against.out.find("## Field semantics"));
  const Outcome unlike = run({"analyse", data + "reference_full.ndjson.gz", "--against", data + "mlp.ndjson"});
  EXPECT_EQ(unlike.exit, 4) << unlike.err;
  EXPECT_TRUE(unlike.out.empty());
  EXPECT_EQ(run({"analyse", data + "reference_full.ndjson.gz", "--against", "nowhere.ndjson"}).exit, 3);
}

TEST_F(Cli, ExplainAndVerifyAnswerOrRefuse) {
  const std::string witnessed = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/golden/witnessed/capture.ndjson";
  const Outcome one = run({"explain", witnessed, "cpp_fused_add_0"});
  EXPECT_EQ(one.exit, 0) << one.err;
  EXPECT_NE(one.out.find("model.py:3"), std::string::npos);
  EXPECT_EQ(one.out.find('\x1b'), std::string::npos) << "no colours into a pipe";
  const Outcome near = run({"explain", witnessed, "cpp_fused_ad_0"});
  EXPECT_EQ(near.exit, 2);
  EXPECT_NE(near.err.find("did you mean cpp_fused_add_0?"), std::string::npos) << near.err;
  EXPECT_NE(run({"explain", witnessed, "model.py:99"}).err.find("did you mean model.py:11?"), std::string::npos);
  EXPECT_EQ(run({"verify", witnessed}).exit, 0);
  const Outcome none = run({"verify", witnessed, "--stages", "fx_post_grad"});
  EXPECT_EQ(none.exit, 2) << none.out;
  EXPECT_NE(none.err.find("nothing to verify"), std::string::npos) << none.err;
  const Outcome low = run({"verify", std::string(KERNTRAIL_SOURCE_DIR) + "/tests/golden/seed000/capture.ndjson"});
  EXPECT_EQ(low.exit, 3);
  EXPECT_NE(low.err.find("--level truth"), std::string::npos) << low.err;
}

TEST_F(Cli, DiffComparesRefusesAndForces) {
  const std::string data = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/captures/";
  const std::string seed = data + "reference_seed.ndjson.gz";
  const std::string full = data + "reference_full.ndjson.gz";
  const Outcome repaired = run({"diff", seed, full});
  EXPECT_EQ(repaired.exit, 0) << repaired.err;
  EXPECT_EQ(repaired.err, "");
  EXPECT_NE(repaired.out.find("**Better: 16 fields gained"), std::string::npos) << repaired.out;
  EXPECT_NE(repaired.out.find("setting metadata: `seed` → `full`"), std::string::npos) << repaired.out;
  EXPECT_EQ(run({"diff", seed, full, "--exit-code"}).exit, 0);
  const Outcome broken = run({"diff", full, seed, "--exit-code"});
  EXPECT_EQ(broken.exit, 1);
  EXPECT_NE(broken.out.find("**Worse: 16 fields lost"), std::string::npos) << broken.out;
  EXPECT_EQ(run({"diff", full, seed}).exit, 0);
  const Outcome unlike = run({"diff", seed, capture("stock_training")});
  EXPECT_EQ(unlike.exit, 4);
  EXPECT_EQ(unlike.out, "");
  for (const char* code : {"  capture-level: ", "  backend: ", "  model: ", "  partial: ", "--force"})
    EXPECT_NE(unlike.err.find(code), std::string::npos) << code << unlike.err;
  const Outcome forced = run({"diff", seed, capture("stock_training"), "--force", "--format", "json"});
  EXPECT_EQ(forced.exit, 0) << forced.err;
  const auto json = base::Json::parse(forced.out);
  ASSERT_TRUE(json);
  EXPECT_FALSE((*json)["comparable"].as_bool(true));
  EXPECT_NE(run({"diff", seed, capture("stock_training"), "--force"}).out.find("**These captures are not comparable"),
            std::string::npos);
  EXPECT_EQ(run({"diff", seed}).exit, 2);
  EXPECT_EQ(run({"diff", "-", "-"}).exit, 2);
  EXPECT_EQ(run({"diff", seed, path("nothing.ndjson")}).exit, 3);
  EXPECT_EQ(run({"diff", seed, full, "--stages", "no_such"}).exit, 2);
  const Outcome stages = run({"diff", seed, full, "--stages", "fx_pre_grad,fx_joint"});
  EXPECT_NE(stages.out.find("**No field, link or truth was lost or gained.**"), std::string::npos) << stages.out;
  const Outcome piped = run({"diff", "-", full, "-o", path("sub/diff.md")}, seed);
  EXPECT_EQ(piped.exit, 0) << piped.err;
  EXPECT_TRUE(base::read_file(path("sub/diff.md")));
}

TEST_F(Cli, IntentsOfTheUserAreDeclaredNotLost) {
  ASSERT_TRUE(base::write_file(path("mine.json"), R"({"version":1,"intents":[
      {"pass":"pattern_matcher","kind":"remaps","reason":"attention has no line","pattern":"_sfdp_pattern_1"},
      {"pass":"pass_pattern_*","kind":"remaps","reason":"attention has no line","pattern":"_sfdp_pattern_1"}]})"));
  const Outcome with = run({"drops", capture("lossy_passes"), "--intents", path("mine.json")});
  EXPECT_EQ(with.exit, 0) << with.err;
  EXPECT_EQ(with.out.find("## Pass `pass_pattern_0`"), std::string::npos) << with.out;
  EXPECT_NE(with.out.find("attention has no line"), std::string::npos);
  ASSERT_TRUE(base::write_file(path("bad.json"), R"({"intents":[{"pass":"x","kind":"removes"}]})"));
  const Outcome bad = run({"drops", capture("lossy_passes"), "--intents", path("bad.json")});
  EXPECT_EQ(bad.exit, 3);
  EXPECT_NE(bad.err.find("bad.json:1:13: intents[0]: \"reason\" is missing"), std::string::npos) << bad.err;
  ASSERT_TRUE(base::write_file(path("bad.json"), "{\"intents\": [\n  {\"pass\": \"x\",}\n]}\n"));
  const Outcome comma = run({"drops", capture("lossy_passes"), "--intents", path("bad.json")});
  EXPECT_NE(comma.err.find("bad.json:2:16: is not JSON"), std::string::npos) << comma.err;
  EXPECT_EQ(run({"drops", capture("lossy_passes"), "--intents", path("none.json")}).exit, 3);
}

TEST_F(Cli, IntentsThatCoverNothingAreSaid) {
  const auto warnings = [&](const std::string& intent, const std::string& of = "lossy_passes") {
    EXPECT_TRUE(base::write_file(path("mine.json"), R"({"$schema":"intents.schema.json","intents":[)" + intent + "]}"));
    const Outcome outcome = run({"drops", capture(of), "--intents", path("mine.json")});
    EXPECT_EQ(outcome.exit, 0) << outcome.err;
    return outcome.err;
  };
  const std::string misspelt = warnings(R"({"pass":"pass_patern_0","kind":"removes","reason":"r"})");
  EXPECT_NE(
      misspelt.find("mine.json: intents[0] covers nothing: the capture has no pass \"pass_patern_0\"; did you mean "
                    "\"pass_pattern_0\"?"),
      std::string::npos)
      << misspelt;
  EXPECT_NE(warnings(R"({"pass":"pass_pattern_0","kind":"remaps","reason":"r","fields":["stack_trase"]})")
                .find("by its fields \"stack_trase\": the capture has none such there; did you mean \"stack_trace\"?"),
            std::string::npos);
  EXPECT_NE(
      warnings(R"({"pass":"pass_pattern_0","kind":"remaps","reason":"r","pattern":"sfdp"})").find("by its pattern"),
      std::string::npos);
  EXPECT_NE(warnings(R"({"pass":"x","kind":"removes","reason":"r"})", "seed000").find("holds no passes"),
            std::string::npos);
  EXPECT_EQ(warnings(R"({"pass":"pass_pattern_0","kind":"removes","reason":"r"})"), "");
}

TEST_F(Cli, WhatIsNoCaptureIsSaidSo) {
  ASSERT_TRUE(base::write_file(path("model.py"), "import torch\n"));
  const Outcome program = run({"matrix", path("model.py")});
  EXPECT_NE(program.err.find("model.py:1: is not a kerntrail capture (its first line is \"import torch\"): expected"),
            std::string::npos)
      << program.err;
  ASSERT_TRUE(base::write_file(path("empty.ndjson"), ""));
  EXPECT_NE(run({"info", path("empty.ndjson")}).err.find("is empty: a recording that was cut"), std::string::npos);
}

TEST_F(Cli, UnknownStagesAndCompilesListTheKnown) {
  const Outcome stage = run({"matrix", capture("stock_training"), "--stages", "foo"});
  EXPECT_EQ(stage.exit, 2);
  EXPECT_NE(stage.err.find("no stage \"foo\"; it has: fx_pre_grad, fx_post_grad, ir_pre_pass"), std::string::npos)
      << stage.err;
  EXPECT_EQ(stage.err.find("superdsc"), std::string::npos) << "declared, but nothing was seen there: " << stage.err;
  EXPECT_NE(run({"drops", capture("stock_training"), "--stages", "superdsc"}).err.find("nothing of stage"),
            std::string::npos);
  EXPECT_NE(run({"report", capture("stock_training"), "--compile", "c9"}).err.find("it has c0 to c"),
            std::string::npos);
  EXPECT_NE(run({"report", capture(), "--compile", "c9"}).err.find("it has c0 alone"), std::string::npos);
}

TEST_F(Cli, TheIssueIsNamedOnlyForItsPipeline) {
  EXPECT_NE(run({"report", capture()}).out.find("> Issue: torch-spyre#2574"), std::string::npos);
  const Outcome stock = run({"report", capture("stock_training"), "--stamp", "today"});
  EXPECT_NE(stock.out.find("> Generated: today\n"), std::string::npos);
  EXPECT_EQ(stock.out.find("2574"), std::string::npos);
}

TEST_F(Cli, RecordSuggestsOptions) {
  const Outcome record = run({"record", "--levl", "borders", "model.py"});
  EXPECT_EQ(record.exit, 2);
  EXPECT_NE(record.err.find("kerntrail record: unknown option --levl; did you mean --level?"), std::string::npos)
      << record.err;
  EXPECT_NE(run({"audit", "--fromat=json"}).err.find("did you mean --format?"), std::string::npos);
}

// An interpreter that stands in for Python: "records" a capture we have, then ends as asked.
TEST_F(Cli, RecordSaysWhatBecameOfTheCapture) {
  const auto recorded = [&](const std::string& with, std::vector<std::string> more = {}) {
    EXPECT_TRUE(base::write_file(path("python"), "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\n" + with + "\n"));
    EXPECT_TRUE(base::write_file(path("program.py"), ""));
    fs::permissions(path("python"), fs::perms::owner_all);
    std::vector<std::string> all{"record", "--python", path("python"), "-o", path("c.ndjson")};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(path("program.py"));
    return run(all);
  };
  const std::string copy = "cp " + capture() + " \"$5\"; ";
  const Outcome fine = recorded(copy + "exit 0");
  EXPECT_EQ(fine.exit, 0);
  EXPECT_EQ(fine.out, "");
  EXPECT_EQ(fine.err, "kerntrail: wrote " + path("c.ndjson") + ": 1 compile, 34 units\n");
  EXPECT_EQ(recorded(copy + "exit 0", {"-q"}).err, "");
  const Outcome unseen = recorded("cp " + capture("stock_training") + " \"$5\"; exit 0");
  EXPECT_NE(unseen.err.find("1 of 3 compiles not observed"), std::string::npos) << unseen.err;
  const Outcome failed = recorded(copy + "exit 7");
  EXPECT_EQ(failed.exit, 7);
  EXPECT_NE(failed.err.find("the program exited with 7; its capture " + path("c.ndjson") + ": 1 compile"),
            std::string::npos)
      << failed.err;
  const Outcome killed = recorded("head -n 200 " + capture() + " > \"$5\"; kill -TERM $$");
  EXPECT_EQ(killed.exit, 128 + 15);
  EXPECT_NE(killed.err.find("ended by signal 15 (Terminated); its capture"), std::string::npos) << killed.err;
  EXPECT_NE(killed.err.find("torn at line 200"), std::string::npos) << killed.err;
  const Outcome empty = recorded(": > \"$5\"; kill -KILL $$", {"-q"});
  EXPECT_NE(empty.err.find("signal 9 (Killed); its capture is empty"), std::string::npos) << empty.err;
  EXPECT_NE(recorded("kill -KILL $$").err.find("was not begun"), std::string::npos);
  EXPECT_EQ(recorded("exit 2").err, "") << "the recording side said why";
}

TEST_F(Cli, SelftestRunsTheCheckInThePythonThatWasNamed) {
  EXPECT_TRUE(base::write_file(path("python"), "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\necho \"$@\"\nexit 1\n"));
  fs::permissions(path("python"), fs::perms::owner_all);
  const Outcome all = run({"selftest", "markers", "--python", path("python")});
  EXPECT_EQ(all.exit, 1);
  EXPECT_EQ(all.out, "-m kerntrail selftest markers\n");
  const Outcome one = run({"selftest", "--python", path("python"), "markers", "model.py", "--python", "x"});
  EXPECT_EQ(one.out, "-m kerntrail selftest markers model.py --python x\n") << one.err;
  const Outcome none = run({"selftest"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("check is required"), std::string::npos) << none.err;
  EXPECT_NE(run({"selftest", "merkers"}).err.find("unknown check merkers"), std::string::npos);
}

TEST_F(Cli, RulesAreTheDocument) {
  const auto document = base::read_file(std::string(KERNTRAIL_SOURCE_DIR) + "/docs/rules.md");
  ASSERT_TRUE(document);
  EXPECT_EQ(run({"rules"}).out, *document);
  EXPECT_TRUE(base::Json::parse(run({"rules", "--format", "json"}).out));
}

TEST_F(Cli, LineageCanNameThePasses) {
  const std::vector<std::string> asked{"lineage", capture("lossy_passes"), "--stages", "all", "--node", "sdpa"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = asked;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  EXPECT_EQ(with({}).out.find("pass_pattern_0"), std::string::npos);
  EXPECT_NE(with({"--passes"}).out.find("<pass_pattern_0>"), std::string::npos) << with({"--passes"}).out;
  EXPECT_NE(with({"--passes", "--format", "mermaid"}).out.find("-.->|\"pass_pattern_0\"| n"), std::string::npos);
  EXPECT_NE(with({"--passes", "--format", "dot"}).out.find("label=\"pass_pattern_0\"]"), std::string::npos);
  EXPECT_NE(with({"--format", "mermaid"}).out.find(" -.-> n"), std::string::npos) << "of several matched nodes";
  EXPECT_NE(with({}).out.find("[birth, ambiguous]"), std::string::npos) << with({}).out;
  EXPECT_NE(with({"--passes", "--format", "json"}).out.find("\"pass\": \"pass_pattern_0\""), std::string::npos);
}

TEST_F(Cli, ResultGoesToTheNamedFile) {
  const Outcome outcome = run({"report", capture(), "-o", path("deep/er/report.md")});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto written = base::read_file(path("deep/er/report.md"));
  ASSERT_TRUE(written);
  EXPECT_EQ(*written, golden("seed000/report.md"));
}

TEST_F(Cli, ReadsStandardInput) {
  const Outcome outcome = run({"matrix", "-"}, capture());
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.out, golden("seed000/matrix.md"));
}

TEST_F(Cli, LineageAnswersInBothDirections) {
  const Outcome line = run({"lineage", capture(), "--line", "reference_mlp.py:26"});
  EXPECT_EQ(line.exit, 0) << line.err;
  EXPECT_NE(line.out.find("becomes"), std::string::npos);
  EXPECT_NE(line.out.find("sdsc_fused_addmm_linear_relu_0"), std::string::npos);
  EXPECT_EQ(line.out.find("self.fc2"), std::string::npos);
  for (const char* same :
       {"examples/reference_mlp.py:26", "/home/me/run/examples/reference_mlp.py:26", "./examples/reference_mlp.py:26"})
    EXPECT_EQ(run({"lineage", capture(), "--line", same}).out, line.out) << same;
  for (const char* other : {"/home/me/my_reference_mlp.py:26", "mlp.py:26"})
    EXPECT_EQ(run({"lineage", capture(), "--line", other}).exit, 2) << other;
  const Outcome kernel = run({"lineage", capture(), "--kernel", "sdsc_fused_addmm_linear_relu_0"});
  EXPECT_EQ(kernel.exit, 0);
  for (const char* code : {"x = self.fc1(x)", "x = torch.relu(x)", "x = self.fc2(x)"}) {
    EXPECT_NE(kernel.out.find(code), std::string::npos) << code;
  }
  const Outcome node = run({"lineage", capture(), "--node", "add_tensor_1", "--format", "json"});
  EXPECT_EQ(node.exit, 0);
  EXPECT_TRUE(base::Json::parse(node.out));
}

TEST_F(Cli, QuestionsWithoutAnAnswerAreUsageErrors) {
  const Outcome missing = run({"lineage", capture(), "--node", "add_tensr_1"});
  EXPECT_EQ(missing.exit, 2);
  EXPECT_NE(missing.err.find("did you mean add_tensor_1?"), std::string::npos) << missing.err;
  const Outcome kernel = run({"lineage", capture(), "--kernel", "add_tensor_1"});
  EXPECT_NE(kernel.err.find("no kernel add_tensor_1\n"), std::string::npos)
      << "no unit of another kind: " << kernel.err;
  const Outcome line = run({"lineage", capture(), "--line", "reference_mlp.py:9999"});
  EXPECT_NE(line.err.find("did you mean reference_mlp.py:27?"), std::string::npos) << line.err;
  EXPECT_EQ(run({"lineage", capture(), "--line", "reference_mlp.py"}).exit, 2);
  EXPECT_EQ(run({"lineage", capture(), "--node", "a", "--kernel", "b"}).exit, 2);
  EXPECT_EQ(run({"matrix", capture(), "--stages", "fx_pre"}).exit, 2);
  EXPECT_EQ(run({"report", capture(), "--compile", "c9"}).exit, 2);
}

TEST_F(Cli, ChoosesCompilesAndStages) {
  const Outcome one = run({"matrix", capture("stock_training"), "--compile", "c0"});
  EXPECT_EQ(one.exit, 0) << one.err;
  EXPECT_EQ(one.out.find("## Compile"), std::string::npos);
  const Outcome stages = run({"matrix", capture(), "--stages", "fx_pre_grad,op_spec"});
  EXPECT_EQ(stages.exit, 0);
  EXPECT_NE(stages.out.find("| Layer | Field | FX Graph (pre-grad) | OpSpec |"), std::string::npos) << stages.out;
}

TEST_F(Cli, StampAndModelAreTheCallers) {
  const Outcome outcome =
      run({"report", capture(), "--stamp", "2026-07-15 14:22", "--model", "SimpleMLP", "--example"});
  EXPECT_EQ(outcome.out.rfind("# Example Audit: `SimpleMLP` — Source-to-Kernel Provenance\n", 0), 0U);
  EXPECT_NE(outcome.out.find("Generated: 2026-07-15 14:22 | Issue: torch-spyre#2574"), std::string::npos);
}

TEST_F(Cli, NotObservedAndEmptyAreSaidOnStandardError) {
  const Outcome partial = run({"report", capture("stock_training")});
  EXPECT_EQ(partial.exit, 0);
  EXPECT_NE(partial.err.find("compile c2 was not observed"), std::string::npos) << partial.err;
  EXPECT_NE(partial.err.find("partial"), std::string::npos);
  const Outcome empty = run({"report", capture("empty_run")});
  EXPECT_EQ(empty.exit, 0);
  EXPECT_NE(empty.err.find("nothing was compiled"), std::string::npos);
  EXPECT_NE(empty.out.find("Nothing was compiled"), std::string::npos);
}

TEST_F(Cli, EqualNotesAreOne) {
  std::string text = golden("stock_training/capture.ndjson");
  text.resize(text.rfind("{\"record\":\"end\""));
  for (const char* compile : {"c0", "c0", "c1"}) {
    for (const char* code : {"fallback-stock", "not-observed"})
      text += std::string(R"({"record":"note","code":")") + code +
              R"(","severity":"warning","text":"for this reason","compile":")" + compile + "\"}\n";
  }
  ASSERT_TRUE(base::write_file(path("notes.ndjson"), text));
  const Outcome info = run({"info", path("notes.ndjson")});
  EXPECT_NE(info.out.find("warning fallback-stock (c0, c1; ×3): for this reason\n"), std::string::npos) << info.out;
  const Outcome report = run({"report", path("notes.ndjson")});
  EXPECT_NE(report.out.find("- `fallback-stock` (warning, ×2): for this reason"), std::string::npos);
  EXPECT_NE(report.err.find("compiles c0, c1 were not observed: for this reason\n"), std::string::npos) << report.err;
}

TEST_F(Cli, UnreadableInputsExitWithThree) {
  for (const char* verb : {"report", "matrix", "lineage", "drops", "export", "info", "validate"}) {
    const Outcome missing = run({verb, path("nothing.ndjson")});
    EXPECT_EQ(missing.exit, 3) << verb;
    EXPECT_NE(missing.err.find("nothing.ndjson"), std::string::npos) << verb;
    EXPECT_EQ(missing.out, "") << verb;
    ASSERT_TRUE(base::write_file(path("not.ndjson"), "this is no capture\n"));
    EXPECT_EQ(run({verb, path("not.ndjson")}).exit, 3) << verb;
  }
  EXPECT_EQ(run({"matrix", capture(), "-o", "/dev/null/matrix.md"}).exit, 3);
}

TEST_F(Cli, TornCaptureIsReadAndSaidSo) {
  std::string text = golden("seed000/capture.ndjson");
  text.resize(text.rfind("{\"record\":\"end\""));
  ASSERT_TRUE(base::write_file(path("torn.ndjson"), text));
  const Outcome matrix = run({"matrix", path("torn.ndjson")});
  EXPECT_EQ(matrix.exit, 0);
  EXPECT_NE(matrix.err.find("torn"), std::string::npos) << matrix.err;
  EXPECT_EQ(matrix.out, golden("seed000/matrix.md"));
  const Outcome validate = run({"validate", path("torn.ndjson")});
  EXPECT_EQ(validate.exit, 3);
  EXPECT_NE(validate.out.find("torn"), std::string::npos) << validate.out << validate.err;
}

TEST_F(Cli, ValidateAndInfo) {
  const Outcome validate = run({"validate", capture()});
  EXPECT_EQ(validate.exit, 0) << validate.err;
  EXPECT_NE(validate.out.find("sound and complete"), std::string::npos) << validate.out;
  const Outcome info = run({"info", capture()});
  EXPECT_EQ(info.exit, 0) << info.err;
  EXPECT_NE(info.out.find("kerntrail_spyre"), std::string::npos);
  EXPECT_NE(info.out.find("7 compute nodes"), std::string::npos) << info.out;
  for (const char* verb : {"info", "validate"}) {
    const Outcome json = run({verb, capture(), "--format", "json"});
    EXPECT_EQ(json.exit, 0);
    EXPECT_TRUE(base::Json::parse(json.out)) << verb;
  }
}

TEST_F(Cli, HelpAndVersion) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.exit, 0);
  for (const char* verb : {"record", "audit", "report", "matrix", "lineage", "drops", "analyse", "explain", "verify",
                           "diff", "gate", "debugify", "emit", "rules", "export", "info", "validate", "selftest"}) {
    EXPECT_NE(help.out.find(verb), std::string::npos) << verb;
    const Outcome own = run({verb, "--help"});
    EXPECT_EQ(own.exit, 0) << verb;
    EXPECT_NE(own.out.find("Examples:"), std::string::npos) << verb;
    EXPECT_NE(own.out.find(std::string("kerntrail ") + verb), std::string::npos) << verb;
  }
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.exit, 0);
  EXPECT_EQ(version.out.rfind("kerntrail ", 0), 0U);
}

TEST_F(Cli, UsageErrorsExitWithTwoAndSuggest) {
  const Outcome nothing = run({});
  EXPECT_EQ(nothing.exit, 2);
  EXPECT_EQ(nothing.out, "");
  const Outcome verb = run({"matrx", capture()});
  EXPECT_EQ(verb.exit, 2);
  EXPECT_NE(verb.err.find("did you mean matrix?"), std::string::npos) << verb.err;
  const Outcome option = run({"matrix", capture(), "--fromat", "json"});
  EXPECT_EQ(option.exit, 2);
  EXPECT_NE(option.err.find("did you mean --format?"), std::string::npos) << option.err;
  EXPECT_EQ(run({"matrix"}).exit, 2);
  EXPECT_EQ(run({"matrix", capture(), "--format", "xml"}).exit, 2);
}

// One input for each exit code of the gate; what it judges is tested beside its sources and in tests/python.
TEST_F(Cli, GateHasAnExitCodeForEachOutcome) {
  const auto gate = [&](const std::string& config, std::vector<std::string> more = {},
                        const std::string& of = "lossy_passes") {
    EXPECT_TRUE(base::write_file(path("kerntrail.toml"), config));
    std::vector<std::string> arguments{"gate",    capture(of), "--config", path("kerntrail.toml"),
                                       "--today", "2026-12-01"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const std::string coverage = "[[coverage]]\nstages = \"fx_post_grad\"\nfields = \"stack_trace\"\nmin = ";
  EXPECT_EQ(gate(coverage + "0.5").exit, 0);
  EXPECT_EQ(gate(coverage + "1.0").exit, 1);
  EXPECT_EQ(gate(coverage + "0.5", {}, "empty_run").exit, 1);
  EXPECT_EQ(gate(coverage + "0.5", {"--update"}).exit, 2);
  EXPECT_EQ(gate(coverage + "50").exit, 3);
  EXPECT_EQ(gate(coverage + "0.5", {"--baseline", path("none.json")}).exit, 3);
  EXPECT_EQ(gate(coverage + "0.5", {}, "no_such_case").exit, 3);
  EXPECT_EQ(gate(coverage + "0.5", {"--baseline", path("b.json"), "--update"}).exit, 0);
  EXPECT_EQ(gate(coverage + "0.5", {"--baseline", path("b.json")}).exit, 0);
  EXPECT_EQ(gate(coverage + "0.5", {"--baseline", path("b.json")}, "witnessed").exit, 4);
  for (const char* format : {"text", "json", "md", "sarif", "junit", "github"}) {
    const Outcome main = gate(coverage + "1.0", {"--format", format});
    EXPECT_EQ(main.exit, 1) << format;
    EXPECT_FALSE(main.out.empty()) << format;
    EXPECT_EQ(main.err, "") << format;
  }
  const Outcome beside = gate(coverage + "1.0", {"--sarif", path("g.sarif"), "--junit", path("g.xml")});
  EXPECT_EQ(beside.out.rfind("gate failed: 1 of 4 checks failed\n", 0), 0U) << beside.out;
  const auto sarif = base::read_file(path("g.sarif"));
  ASSERT_TRUE(sarif);
  EXPECT_TRUE(base::Json::parse(*sarif));
}

TEST_F(Cli, NoColoursOffATerminal) { EXPECT_EQ(run({"lineage", capture()}).out.find('\x1b'), std::string::npos); }

std::string sidecar_fixture(const std::string& name) {
  return std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/spyre_provenance/" + name;
}

TEST_F(Cli, SidecarIsCheckedAndShown) {
  const Outcome shown = run({"sidecar", sidecar_fixture("valid_v1.json")});
  EXPECT_EQ(shown.exit, 0) << shown.err;
  for (const std::string part :
       {"version 1, generation 2, partial; every rule holds\n",
        "2 compiles, 2 kernel identities in 3 occurrences, 3 debug handles\n",
        "compile 3acd1120e232  torch 2.13.0+cpu, back end 0.1.0, tracking level 1; torch's node mapping: ok\n",
        "  sdsc_fused_linear_relu_0\n    event spyre_kernel_v1_fused_linear_relu_atqydvnuutl766na\n",
        "    /workspace/model.py:17  aten.linear.default  (linear)\n", "    no debug handle\n"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << shown.out;
  const Outcome json = run({"sidecar", sidecar_fixture("valid_v1.json"), "--format", "json"});
  EXPECT_EQ(base::Json::parse(json.out).value()["mergeGeneration"].as_int(), 2);
}

TEST_F(Cli, SidecarResolvesEvents) {
  const std::string event = "spyre_kernel_v1_fused_linear_relu_atqydvnuutl766na#007";
  const Outcome text = run({"sidecar", sidecar_fixture("valid_v1.json"), "--event", event});
  EXPECT_EQ(text.exit, 0) << text.err;
  for (const std::string part : {"  command 007 of a launch", "    /workspace/model.py:18  aten.relu.default  (relu)\n",
                                 "    call sdsc_fused_linear_relu_0:1: pre-grad nodes linear, relu;",
                                 "    fusion by fuse_linear_relu: same", "warning ambiguity: 2 occurrences"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  const Outcome json = run({"sidecar", sidecar_fixture("valid_v1.json"), "--event", event, "--format", "json"});
  EXPECT_EQ(base::Json::parse(json.out).value()["status"].as_string(), "partial");
  const Outcome nowhere = run({"sidecar", sidecar_fixture("valid_v1.json"), "--event", "mm"});
  EXPECT_EQ(nowhere.exit, 1);
  EXPECT_NE(nowhere.out.find("error invalid-event-name: "), std::string::npos) << nowhere.out;
  EXPECT_EQ(run({"sidecar", sidecar_fixture("valid_v1.json"), "--selector", "x"}).exit, 2);
}

TEST_F(Cli, VerbsOfCapturesNameTheOneOfSidecars) {
  for (const std::string verb : {"info", "validate"}) {
    const Outcome sidecar = run({verb, sidecar_fixture("valid_v1.json")});
    EXPECT_EQ(sidecar.exit, 3);
    EXPECT_NE(sidecar.err.find("kerntrail sidecar reads it"), std::string::npos) << sidecar.err;
    const Outcome other = run({verb, sidecar_fixture("fixture_manifest.json")});
    EXPECT_EQ(other.err.find("kerntrail sidecar"), std::string::npos) << other.err;
  }
}

TEST_F(Cli, SidecarIsRefusedWithPlaceAndDiagnostic) {
  const std::string file = path("s.json");
  ASSERT_TRUE(base::write_file(file, "{\n \"schemaVersion\": 2\n}"));
  const Outcome newer = run({"sidecar", file});
  EXPECT_EQ(newer.exit, 3);
  EXPECT_EQ(newer.err, "kerntrail sidecar: " + file +
                           ":2:2: sidecar.schemaVersion is 2; this build reads 1 "
                           "(unsupported-schema-version) [too-new]\n");
  EXPECT_EQ(newer.out, "");
  const Outcome missing = run({"sidecar", path("none.json")});
  EXPECT_EQ(missing.exit, 3);
  EXPECT_NE(missing.err.find("(artifact-read-failure)"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace kerntrail
