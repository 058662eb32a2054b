#include "read/capture_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/strings.h"
#include "model/capture_fixtures.h"
#include "model/ndjson_writer.h"
#include "model/recorder.h"
#include "model/replay.h"
#include "read/test_compression.h"

namespace kerntrail::read {
namespace {

using model::NdjsonWriter;
using model::Recorder;

std::string scratch(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "kerntrail_reader_test";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

std::string sample_text() {
  std::string out;
  auto writer = NdjsonWriter::to_string(out);
  Recorder recorder(*writer);
  model::fixtures::record_sample(recorder);
  return out;
}

std::string error_of(std::string_view text, const ReadOptions& options = {}) {
  const auto capture = read_capture_text(text, "f", options);
  return capture ? "no error" : capture.error().text();
}

// A run record and these lines.
std::string with_run(const std::vector<std::string>& lines) {
  std::string out = "{\"record\":\"run\",\"format\":1}\n";
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST(CaptureReader, ReadsTheSampleInEveryPacking) {
  model::Replay direct;
  Recorder recorder(direct);
  model::fixtures::record_sample(recorder);
  ASSERT_EQ(direct.error(), nullptr) << direct.error()->text();
  const std::string expected = model::fixtures::described(direct.take());
  const std::string text = sample_text();
  for (const std::string& bytes : {text, test::gzip(text), test::zstd(text)}) {
    const auto capture = read_capture_text(bytes, "f", {.strict = true});
    ASSERT_TRUE(capture) << capture.error().text();
    EXPECT_EQ(model::fixtures::described(*capture), expected);
    EXPECT_TRUE(capture->end && capture->end->complete);
  }
}

TEST(CaptureReader, TheSampleSaysWhatWasRecorded) {
  const auto c = read_capture_text(sample_text(), "f");
  ASSERT_TRUE(c) << c.error().text();
  const auto pre = c->snapshots_of(static_cast<CompileId>(0U), *c->find_stage("fx_pre_grad"));
  const auto post = c->snapshots_of(static_cast<CompileId>(0U), *c->find_stage("fx_post_grad"));
  ASSERT_EQ(pre.size(), 1U);
  ASSERT_EQ(post.size(), 1U);
  const UnitId relu = c->snapshots[index(pre[0])].units[2];
  EXPECT_EQ(unit_name(*c, relu), "c0.n2");
  EXPECT_EQ(c->text_of(relu, "name", pre[0]), "x_1");
  const AttrId stack = *c->find_attr("stack_trace");
  ASSERT_NE(c->at(relu, stack, pre[0]), nullptr);
  EXPECT_EQ(c->at(relu, stack, post[0]), nullptr);
  const Loc* line = c->innermost_user(c->at(relu, stack, pre[0])->loc);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->line, 13);
  EXPECT_EQ(c->text(line->text), "examples/mlp.py");
  EXPECT_EQ(c->at(relu, *c->find_attr("nn_module_stack"), post[0])->state, State::kEmpty);
  EXPECT_EQ(c->sources[0].lines.at(13), "        x = torch.relu(x)");
}

TEST(CaptureReader, NamesLineAndReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "f: is empty: a recording that was cut before its first record? [torn-capture]"},
      {"{\"record\":\"run\"", "f:1: the file stops inside a record [torn-capture]"},
      {"not json\n", "f:1: is not a kerntrail capture (its first line is \"not json\"): expected a file that "},
      {"not json", "f:1: is not a kerntrail capture (its first line is \"not json\")"},
      {"\x89PNG\r\n", "f:1: is not a kerntrail capture (its first line is no text)"},
      {"{\"record\":\"run\",\n", "f:1: not a line of JSON: "},
      {"[1]\n", "f:1: is not a kerntrail capture (its first line is \"[1]\")"},
      {"{}\n", "f:1: is not a kerntrail capture (its first line is \"{}\")"},
      {"{\"record\":7}\n", "f:1: "},
      {with_run({"{\"format\":1}"}), "f:2: the first member of a record must be \"record\" [schema]"},
      {with_run({"[1]"}), "f:2: a record must be an object, not an array [schema]"},
      {"{\"record\":\"stage\",\"key\":\"s\"}\n", "f:1: the first record must be \"run\", not \"stage\" [schema]"},
      {"{\"record\":\"run\"}\n", "f:1: a run record needs \"format\" [schema]"},
      {"{\"record\":\"run\",\"format\":\"1\"}\n", "f:1: \"format\" must be an integer, not a string [schema]"},
      {"{\"record\":\"run\",\"format\":0}\n", "f:1: \"format\" is 0, outside 1 to 2147483647 [schema]"},
      {"{\"record\":\"run\",\"format\":2,\"novelty\":[]}\n",
       "f:1: has format version 2; this build reads up to version 1 [too-new]"},
      {"{\"record\":\"run\",\"format\":1,\"novelty\":[]}\n", "f:1: a run record has no member \"novelty\" [schema]"},
      {"{\"record\":\"run\",\"format\":1,\"format\":1}\n", "f:1: member \"format\" is there twice [schema]"},
      {with_run({""}), "f:2: an empty line [syntax]"},
      {with_run({"{\"record\":\"verdict\"}"}), "f:2: no record of this format is called \"verdict\" [schema]"},
      {with_run({"{\"record\":7}"}), "f:2: \"record\" must be a string [schema]"},
      {with_run({"{\"record\":\"stage\",\"key\":null}"}), "f:2: \"key\" must be a string, not null [schema]"},
      {with_run({"{\"record\":\"stage\",\"key\":\"s\",\"order\":1.5}"}),
       "f:2: \"order\" must be an integer, not a number [schema]"},
      {with_run({"{\"record\":\"stage\",\"key\":\"s\",\"order\":5000000000}"}),
       "f:2: \"order\" is 5000000000, outside -2147483648 to 2147483647 [schema]"},
      {with_run({"{\"record\":\"attr_kind\",\"name\":\"a\",\"type\":\"blob\"}"}),
       "f:2: \"blob\" is no value this format knows [schema]"},
      {with_run({"{\"record\":\"text\",\"id\":0}"}), "f:2: a text record needs either \"text\" or \"json\" [schema]"},
      {with_run({"{\"record\":\"text\",\"id\":0,\"text\":\"\",\"json\":1}"}),
       "f:2: a text record needs either \"text\" or \"json\" [schema]"},
      {with_run({"{\"record\":\"text\",\"id\":-1,\"text\":\"\"}"}),
       "f:2: \"id\" is -1, outside 0 to 4294967294 [schema]"},
      {with_run({"{\"record\":\"loc\",\"id\":0,\"kind\":\"call\",\"file\":0}"}),
       "f:2: a call loc spells its text or child differently [schema]"},
      {with_run({"{\"record\":\"compile\",\"id\":\"c00\"}"}), "f:2: \"id\" must read like \"c0\" [schema]"},
      {with_run({"{\"record\":\"compile\",\"id\":\"c1\"}"}),
       "f:2: compile 1 is declared where compile 0 comes next [reference]"},
      {with_run({"{\"record\":\"graph\",\"id\":\"c0.g0\"}"}), "f:2: compile \"c0\" was never declared [reference]"},
      {with_run({"{\"record\":\"compile\",\"id\":\"c0\"}", "{\"record\":\"graph\",\"id\":\"c0.x0\"}"}),
       "f:3: \"id\" must read like \"c0.g1\" [schema]"},
      {with_run({"{\"record\":\"compile\",\"id\":\"c0\"}",
                 "{\"record\":\"unit\",\"id\":\"c0.n0\",\"graph\":\"c0.g0\",\"kind\":\"fx_node\"}"}),
       "f:3: graph \"c0.g0\" was never declared [reference]"},
      {with_run({"{\"record\":\"compile\",\"id\":\"c0\"}", "{\"record\":\"graph\",\"id\":\"c0.g0\"}",
                 "{\"record\":\"unit\",\"id\":\"c0.k0\",\"graph\":\"c0.g0\",\"kind\":\"fx_node\"}"}),
       "f:4: the \"id\" of this kind of unit must read like \"c0.n3\" [schema]"},
      {with_run({"{\"record\":\"attr\",\"unit\":\"c0.n9\",\"attr\":\"a\",\"at\":0,\"state\":\"present\"}"}),
       "f:2: unit \"c0.n9\" was never declared [reference]"},
      {with_run({"{\"record\":\"link\",\"kind\":\"k\",\"from\":[3]}"}),
       "f:2: \"from\" must hold strings, not a number [schema]"},
      {with_run({"{\"record\":\"link\",\"kind\":\"k\",\"from\":\"c0.n0\"}"}),
       "f:2: \"from\" must be an array, not a string [schema]"},
      {with_run({"{\"record\":\"note\",\"code\":\"x\",\"severity\":\"info\",\"compile\":\"c3\"}"}),
       "f:2: compile \"c3\" was never declared [reference]"},
      {with_run({"{\"record\":\"volatile\",\"of\":\"c0.k1\",\"key\":\"d\"}"}),
       "f:2: unit \"c0.k1\" was never declared [reference]"},
      {with_run({"{\"record\":\"source\",\"file\":\"x\",\"lines\":{\"01\":\"\"}}"}),
       "f:2: \"01\" is no line number [schema]"},
      {with_run({"{\"record\":\"source\",\"file\":\"x\",\"lines\":{\"1\":\"\",\"1\":\"\"}}"}),
       "f:2: \"lines\" has a key twice [schema]"},
      {with_run({"{\"record\":\"end\",\"status\":\"done\"}"}), "f:2: \"status\" must be complete or partial [schema]"},
      {with_run({"{\"record\":\"end\",\"status\":\"complete\"}"}),
       "f:2: the end record leaves out 1 run records [schema]"},
      {with_run({"{\"record\":\"end\",\"status\":\"complete\",\"counts\":{\"run\":1}}",
                 "{\"record\":\"text\",\"id\":0,\"text\":\"\"}"}),
       "f:3: a record follows the end record [schema]"},
      {with_run({"{\"record\":\"text\",\"id\":0,\"text\":\"\xFF\"}"}), "f:2: not a line of JSON: "},
      {with_run({"{\"record\":\"text\",\"id\":0,\"text\":\"two\nlines\"}"}), "f:2: not a line of JSON: "},
  };
  for (const auto& [text, expected] : cases) {
    const std::string got = error_of(text);
    EXPECT_EQ(got.substr(0, expected.size()), expected) << got;
  }
}

TEST(CaptureReader, RefusesDeepNesting) {
  const auto nested = [](std::size_t n) {
    return with_run({"{\"record\":\"text\",\"id\":0,\"json\":" + std::string(n, '[') + std::string(n, ']') + "}"});
  };
  EXPECT_EQ(error_of(nested(60), {.strict = true}), "f:2: the file stops without an end record [torn-capture]");
  EXPECT_EQ(error_of(nested(64)), "f:2: nested deeper than 64 levels [too-large]");
  EXPECT_EQ(error_of(nested(1000000)), "f:2: nested deeper than 64 levels [too-large]");
}

TEST(CaptureReader, RefusesAnEndlessLineThroughCompression) {
  std::string inside = "{\"record\":\"text\",\"id\":0,\"text\":\"" + std::string((std::size_t{64} << 20) + 10, 'a');
  EXPECT_EQ(error_of(test::zstd(with_run({}) + inside)), "f:2: a line is longer than 64 MiB [too-large]");
}

TEST(CaptureReader, LimitsWhatAFileMayHold) {
  EXPECT_EQ(error_of(test::zstd(sample_text()), {.max_bytes = 500}), "f:1: holds more than 500 bytes [too-large]");
}

TEST(CaptureReader, ReadsOtherSpacingAndOrderOfMembers) {
  const std::string json = "{\"a\":[1,2.50,\"x y\"]}";
  const auto capture = read_capture_text(
      with_run({"{ \"record\" : \"text\" , \"json\" : { \"a\" : [ 1, 2.50, \"x y\" ] } , \"id\" : 0 }\r",
                "{\"record\":\"text\",\"id\":1,\"json\":-0.0}", "{\"record\":\"text\",\"id\":2,\"json\":\"}\\\"]\"}"}),
      "f");
  ASSERT_TRUE(capture) << capture.error().text();
  EXPECT_EQ(capture->texts, (std::vector<std::string>{json, "-0.0", "\"}\\\"]\""}));
}

TEST(CaptureReader, FirstStageOfAnAttrNeedNotBeThere) {
  const auto capture = read_capture_text(
      with_run({"{\"record\":\"attr_kind\",\"name\":\"a\",\"type\":\"text\",\"first_stage\":\"nowhere\"}"}), "f");
  ASSERT_TRUE(capture) << capture.error().text();
  EXPECT_EQ(capture->attr_kinds[0].first_stage, "nowhere");
}

// The last snapshot that a text holds whole.
std::size_t whole_snapshots(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find("{\"record\":\"snapshot\"", at)) != std::string_view::npos;) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) break;
    ++n;
  }
  return n;
}

TEST(CaptureReader, EveryCutKeepsTheFinishedSnapshots) {
  const std::string text = sample_text();
  const auto whole = read_capture_text(text, "f");
  ASSERT_TRUE(whole);
  for (std::size_t cut = 0; cut < text.size() - 1; ++cut) {
    // Every record's end with its neighbours, and every 13th byte.
    const bool at_record = text[cut] == '\n' || (cut > 0 && text[cut - 1] == '\n') || text[cut + 1] == '\n';
    if (!at_record && cut % 13 != 0) continue;
    const std::string_view part = std::string_view(text).substr(0, cut);
    ReadStatistics statistics;
    const auto capture = read_capture_text(part, "f", {}, &statistics);
    if (part.find('}') == std::string_view::npos || part.find('\n') == std::string_view::npos) {
      if (!capture) {
        ASSERT_EQ(capture.error().code, ErrorCode::kTorn) << capture.error().text();
        continue;
      }
    }
    ASSERT_TRUE(capture) << cut << ": " << capture.error().text();
    ASSERT_FALSE(capture->end) << cut;
    const std::size_t snapshots = whole_snapshots(part);
    ASSERT_GE(capture->snapshots.size(), snapshots);
    ASSERT_LE(capture->snapshots.size(), snapshots + 1);  // a last line that only lacks its line end counts
    ASSERT_FALSE(capture->notes.empty());
    ASSERT_EQ(capture->notes.back().code, "torn-capture");
    ASSERT_EQ(capture->notes.back().severity, Severity::kError);
    ASSERT_TRUE(statistics.torn);
    ASSERT_EQ(statistics.torn->line, statistics.lines);
    for (std::size_t i = 0; i < capture->snapshots.size(); ++i) {
      for (const UnitId unit : capture->snapshots[i].units) {
        const SnapshotId at = id_at<SnapshotId>(i);
        ASSERT_EQ(capture->attrs_at(unit, at).size(), whole->attrs_at(unit, at).size());
      }
    }
    ASSERT_EQ(error_of(part, {.strict = true}).substr(0, 2), "f:");
  }
}

TEST(CaptureReader, EveryCutOfACompressedFileIsTornOrWhole) {
  for (const std::string ending : {".gz", ".zst"}) {
    const std::string path = scratch("cut.ndjson" + ending);
    {
      auto writer = NdjsonWriter::open(path, true);
      ASSERT_TRUE(writer);
      Recorder recorder(**writer);
      model::fixtures::record_sample(recorder);
    }
    const std::string bytes = base::read_file(path).value();
    std::size_t last = 0;
    for (std::size_t cut = 0; cut < bytes.size(); cut += 3) {
      const auto capture = read_capture_text(std::string_view(bytes).substr(0, cut), "f");
      if (!capture) {
        ASSERT_TRUE(capture.error().code == ErrorCode::kTorn || cut < 4) << ending << cut << capture.error().text();
        ASSERT_EQ(last, 0U);
        continue;
      }
      ASSERT_FALSE(capture->end) << cut;
      ASSERT_GE(capture->snapshots.size(), last);
      last = capture->snapshots.size();
      ASSERT_NE(capture->notes.back().text.find(last == 0 ? "no snapshot is finished" : "read up to snapshot"),
                std::string::npos);
    }
    EXPECT_EQ(last, 6U);
  }
}

TEST(CaptureReader, TornNoteNamesTheOpenFrame) {
  const std::string rest = test::zstd("{\"record\":\"note\"}");
  const std::string text = sample_text();
  const std::string without_end = text.substr(0, text.rfind("{\"record\":\"end\""));
  const auto capture = read_capture_text(test::zstd(without_end) + rest.substr(0, rest.size() / 2), "f");
  ASSERT_TRUE(capture) << capture.error().text();
  EXPECT_NE(capture->notes.back().text.find("the zstd frame that is open at byte "), std::string::npos)
      << capture->notes.back().text;
  EXPECT_NE(capture->notes.back().text.find("read up to snapshot 5 (stage \"kernel\", graph c0.g3)"), std::string::npos)
      << capture->notes.back().text;
}

// A child that is killed between snapshots, without any chance to clean up.
TEST(CaptureReader, AKilledWriterLeavesAReadableFile) {
  for (const std::string ending : {"", ".gz", ".zst"}) {
    const std::string path = scratch("killed.ndjson" + ending);
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto writer = NdjsonWriter::open(path, true);
      if (!writer) ::_exit(1);
      Recorder r(**writer);
      r.run({});
      const StageId stage = r.stage({"s", "", "", "", 1});
      const AttrId attr = r.inventory_attr("n");
      const GraphId graph = r.graph(r.compile({}), "fx", "");
      std::vector<model::ObservedUnit> units = {{r.unit(graph, UnitKind::kFxNode), {{attr, {}}}}};
      for (int i = 0; i < 7; ++i) {
        units[0].attrs[0].value.state = State::kPresent;
        units[0].attrs[0].value.text = r.json(std::to_string(i));
        r.snapshot(stage, graph, units);
      }
      r.text("this was on its way to snapshot 7");
      r.unit(graph, UnitKind::kFxNode);
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto capture = read_capture(path);
    ASSERT_TRUE(capture) << capture.error().text();
    EXPECT_EQ(capture->snapshots.size(), 7U);
    EXPECT_FALSE(capture->end);
    EXPECT_EQ(capture->text_of(static_cast<UnitId>(0U), "n", static_cast<SnapshotId>(6U)), "6");
    EXPECT_EQ(read_capture(path, {.strict = true}).error().code, ErrorCode::kTorn);
  }
}

TEST(CaptureReader, ReadsFilesAndNamesThem) {
  const std::string path = scratch("named.ndjson");
  ASSERT_TRUE(base::write_file(path, with_run({"{\"record\":\"nonsense\"}"})));
  EXPECT_EQ(read_capture(path).error().text(), path + ":2: no record of this format is called \"nonsense\" [schema]");
  EXPECT_EQ(read_capture(scratch("absent.ndjson")).error().code, ErrorCode::kIo);
  EXPECT_EQ(read_capture(testing::TempDir()).error().code, ErrorCode::kIo);
}

TEST(CaptureReader, DamageInTheMiddleOfACompressedFileIsNoTear) {
  const std::string text = sample_text();
  const std::string first = text.substr(0, text.size() / 2), second = text.substr(text.size() / 2);
  const auto capture = read_capture_text(test::gzip(first) + "damage in between" + test::gzip(second), "f");
  ASSERT_FALSE(capture);
  EXPECT_EQ(capture.error().code, ErrorCode::kSyntax);
  EXPECT_NE(capture.error().message.find("the gzip stream is damaged near byte"), std::string::npos);
}

}  // namespace
}  // namespace kerntrail::read
