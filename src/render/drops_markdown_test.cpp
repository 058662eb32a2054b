// What the Markdown of lost provenance says in words is what its tables show.
#include "render/drops_markdown.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "capture_builder.h"
#include "cases.h"

namespace kerntrail::render {
namespace {

using testing::CaptureBuilder;

std::string text_of(const Capture& capture, DropGrouping by = DropGrouping::kPass, const DropOptions& options = {}) {
  const auto all = drops(capture, options);
  EXPECT_TRUE(all) << (all ? "" : all.error().text());
  return all ? drops_markdown(*all, by, capture_state(capture)) : std::string();
}

// The number before a word, 0 where the text has none.
std::size_t number(const std::string& text, const std::string& pattern) {
  std::smatch found;
  return std::regex_search(text, found, std::regex(pattern)) ? std::stoul(found[1].str()) : 0;
}

using Cells = std::vector<std::string>;

struct Table {
  std::string heading;
  Cells header;
  std::vector<Cells> rows;
};

Cells cells_of(const std::string& line) {
  Cells cells;
  std::stringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
  return cells;
}

std::vector<Table> tables(const std::string& text) {
  std::vector<Table> found;
  std::stringstream in(text);
  std::string heading, before;
  for (std::string line; std::getline(in, line); before = line) {
    if (line.starts_with("#")) heading = line;
    if (!line.starts_with("|") || line.starts_with("| ---")) continue;
    if (before.starts_with("|"))
      found.back().rows.push_back(cells_of(line));
    else
      found.push_back({heading, cells_of(line), {}});
  }
  return found;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// "`a` (c0.n1), `b` (c0.n2) and 3 more"
std::size_t units_in(const std::string& cell) { return count(cell, "(c0.") + number(cell, "and ([0-9]+) more"); }

struct Shown {
  std::size_t losses = 0, marks = 0, passes = 0, gaps = 0, broken = 0;
  std::set<std::string> places;
};

Shown shown_in(const std::string& text) {
  Shown shown;
  for (const Table& table : tables(text)) {
    for (const Cells& row : table.rows) {
      if (table.header.size() > 1 && table.header[1] == " Lost ") {
        shown.losses += units_in(row[0]) * count(row[1], "`") / 2;
        shown.places.insert(table.heading);
      }
      if (table.header.size() > 2 && table.header[2] == " Quality ") shown.marks += units_in(row[0]);
      if (table.header[0] == " Pass " && table.header[1] == " Made ")
        ++(row[0].starts_with(" no pass:") ? shown.gaps : shown.passes);
      if (table.header[1] == " Rule " && table.heading.find("Declared") == std::string::npos) ++shown.broken;
    }
  }
  return shown;
}

TEST(DropsMarkdown, TheWordsCountWhatTheTablesShow) {
  const testing::Built built = testing::lossy_passes();
  for (const DropGrouping by : {DropGrouping::kPass, DropGrouping::kLine}) {
    const std::string text = text_of(built.capture, by);
    const Shown shown = shown_in(text);
    EXPECT_EQ(number(text, "([0-9]+) fields? lost"), shown.losses) << text;
    EXPECT_EQ(number(text, "at ([0-9]+) places?"), shown.places.size()) << text;
    EXPECT_EQ(number(text, "([0-9]+) collapsed") + number(text, "([0-9]+) overwritten") +
                  number(text, "([0-9]+) compiler_made") + number(text, "([0-9]+) vacuous[.,]"),
              shown.marks)
        << text;
    EXPECT_EQ(number(text, "broken ([0-9]+) time"), shown.broken);
    EXPECT_EQ(number(text, "([0-9]+) pass(?:es)? made or changed"), shown.passes) << text;
    EXPECT_EQ(number(text, "([0-9]+) changes? outside any pass"), shown.gaps) << text;
    EXPECT_GT(shown.losses * shown.marks * shown.passes * shown.gaps * shown.broken, 0U) << "something of each";
  }
}

// One node that goes on as it is; a second pass retargets it and does nothing else.
Capture plain(const Settings& settings, bool torn, bool with_pass) {
  CaptureBuilder b(settings);
  const GraphId graph = b.graph(b.compile("inductor"), "fx", "inference");
  const UnitId unit = b.unit(graph, UnitKind::kFxNode);
  const auto node = [&] { return b.seen(unit).text("name", "x").text("op", "call_function").stack("m.py", 1, "x"); };
  b.snapshot("fx_aten", graph, {node()});
  if (with_pass) {
    Pass pass;
    pass.graph = graph;
    pass.name = "retargets";
    const PassId id = b.recorder().begin_pass(pass);
    Pass done;
    done.retargeted = {unit};
    b.recorder().end_pass(id, done);
  }
  Capture capture = b.finish();
  if (torn) capture.end.reset();
  return capture;
}

TEST(DropsMarkdown, ARetargetingPassHasItsRow) {
  const std::string text = text_of(plain({{"level", "passes"}}, false, true));
  EXPECT_NE(text.find("1 pass made or changed something"), std::string::npos) << text;
  EXPECT_NE(text.find("| `retargets` | 0 | 0 | 1 | 0 |"), std::string::npos) << text;
}

// `eats` takes the stack of one node on each of two graphs; `sips` does so on the first only.
Capture eaten() {
  CaptureBuilder b(Settings{{"level", "passes"}});
  const CompileId compile = b.compile("inductor");
  const GraphId outer = b.graph(compile, "fx", "inference");
  const GraphId inner = b.recorder().graph(compile, "fx", "inference", "true_graph_0");
  const auto node = [&](UnitId unit, std::string_view name) {
    return b.seen(unit).text("name", name).text("op", "call_function").text("target", name);
  };
  const auto eat = [&](GraphId graph, UnitId unit, std::string_view name, std::string_view by) {
    Pass pass;
    pass.graph = graph;
    pass.name = by;
    const PassId id = b.recorder().begin_pass(pass);
    b.recorder().look(id, graph, std::vector<model::ObservedUnit>{node(unit, name).value()});
    Pass done;
    done.changed = {unit};
    b.recorder().end_pass(id, done);
  };
  const UnitId first = b.unit(outer, UnitKind::kFxNode);
  const UnitId second = b.unit(outer, UnitKind::kFxNode);
  const UnitId third = b.unit(inner, UnitKind::kFxNode);
  b.snapshot("fx_aten", outer, {node(first, "a").stack("m.py", 1, "a"), node(second, "b").stack("m.py", 2, "b")});
  b.snapshot("fx_aten", inner, {node(third, "c").stack("m.py", 3, "c")});
  eat(outer, first, "a", "eats");
  eat(outer, second, "b", "sips");
  eat(inner, third, "c", "eats");
  b.snapshot("fx_post_grad", outer, {node(first, "a"), node(second, "b")});
  b.snapshot("fx_post_grad", inner, {node(third, "c")});
  return b.finish();
}

TEST(DropsMarkdown, APassOnSeveralGraphsIsOneSection) {
  const std::string text = text_of(eaten());
  EXPECT_EQ(count(text, "## Pass `eats`"), 1U) << text;
  EXPECT_NE(text.find("Ran on several graphs: `c0.g0`, `true_graph_0` (c0.g1)."), std::string::npos) << text;
  EXPECT_EQ(count(text, "| on `c0.g0` |"), 1U) << text;
  EXPECT_EQ(count(text, "| on `true_graph_0` (c0.g1) |"), 1U) << text;
  EXPECT_EQ(count(text, "Ran on several graphs"), 1U) << "a pass that ran on one is not said to";
}

TEST(DropsMarkdown, NothingIsSaidOfWhatIsNotThere) {
  const std::string whole = text_of(plain({{"level", "passes"}}, false, false));
  EXPECT_NE(whole.find("**Nothing was lost.**"), std::string::npos) << whole;
  EXPECT_EQ(whole.find("borders"), std::string::npos) << "no pass was seen, but passes were watched";
  const std::string borders = text_of(plain({{"level", "borders"}}, false, false));
  EXPECT_NE(borders.find("level `borders`"), std::string::npos);
  const std::string torn = text_of(plain({{"level", "passes"}}, true, false));
  EXPECT_NE(torn.find("**The capture is torn:**"), std::string::npos) << torn;
  EXPECT_NE(torn.find("**Nothing was lost in what was written before the capture broke off.**"), std::string::npos);
  EXPECT_EQ(torn.find("borders"), std::string::npos);
  DropOptions options;
  options.analysis.stages = {"fx_aten"};
  const std::string some = text_of(plain({{"level", "passes"}}, false, false), DropGrouping::kPass, options);
  EXPECT_NE(some.find("**Nothing was lost in the stages shown.**"), std::string::npos) << some;
  CaptureBuilder empty;
  Capture nothing = empty.finish();
  nothing.end.reset();
  EXPECT_NE(text_of(nothing).find("nothing can be said"), std::string::npos);
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Loss loss(std::uint32_t unit, bool in_stage) {
  Loss loss;
  loss.unit = static_cast<UnitId>(unit);
  loss.field = static_cast<AttrId>(0U);
  loss.way = LossWay::kAtBirth;
  loss.evidence = "match";
  loss.sources = 55;
  for (std::uint32_t u = 0; u < 6; ++u) loss.had.push_back(static_cast<UnitId>(u));
  loss.in_stage = in_stage;
  return loss;
}

// Two runs of one pass, another pass, and a stage that shows nothing.
Drops sample() {
  Drops drops;
  drops.compile = static_cast<CompileId>(0U);
  drops.passes_recorded = true;
  drops.fields = {"stack_trace"};
  for (std::uint32_t u = 0; u < 9; ++u)
    drops.units[static_cast<UnitId>(u)] = {"c0.n" + std::to_string(u), "n" + std::to_string(u), {}};
  for (std::uint32_t p = 0; p < 3; ++p) {
    PassTally tally;
    tally.pass = static_cast<PassId>(p);
    tally.created = p + 1;
    tally.fates[static_cast<std::size_t>(Fate::kDead)] = 2;
    drops.passes.push_back(tally);
    drops.pass_labels[tally.pass] = {
        p == 1 ? "slot / Mine" : "pattern_matcher", "", "", {"pass_pattern_0"}, PassKind::kPass, "", ""};
  }
  DropSite site;
  site.pass = static_cast<PassId>(0U);
  drops.sites.push_back(site);
  drops.losses = {loss(7, true), loss(8, false)};
  for (const char* key : {"fx_joint", "empty_one"}) {
    StageTally stage;
    stage.key = key;
    stage.units = stage.key == "fx_joint" ? 2 : 0;
    FieldTally field;
    field.name = "stack_trace";
    stage.fields.push_back(field);
    drops.stages.push_back(stage);
  }
  return drops;
}

TEST(DropsMarkdown, RunsOfOnePassAreOneRow) {
  const std::string text = drops_markdown({sample()}, DropGrouping::kPass, {});
  EXPECT_TRUE(holds(text, "| `pass_pattern_0` / `pattern_matcher`, 2 times | 4 | 0 | 0 | 0 | 4 dead | 0 | 0 |"))
      << text;
  EXPECT_TRUE(holds(text, "| `pass_pattern_0` / `slot` / `Mine` | 2 | 0 | 0 | 0 | 2 dead | 0 | 0 |")) << text;
}

TEST(DropsMarkdown, GoneBeforeTheNextStageIsExplainedOnce) {
  Drops drops = sample();
  const std::string text = drops_markdown({drops}, DropGrouping::kPass, {});
  EXPECT_TRUE(holds(text, "†: gone before the next stage")) << text;
  EXPECT_TRUE(holds(text, "| `n8` (c0.n8) † | `stack_trace` |")) << text;
  EXPECT_TRUE(holds(text, "| `n7` (c0.n7) | `stack_trace` |")) << text;
  drops.losses[1].in_stage = true;
  EXPECT_FALSE(holds(drops_markdown({drops}, DropGrouping::kPass, {}), "†"));
}

TEST(DropsMarkdown, AMatchSaysHowManyHadTheField) {
  const std::string text = drops_markdown({sample()}, DropGrouping::kPass, {});
  EXPECT_TRUE(holds(text, "made for a match of 55 nodes, 6 of which had it: `n0`, `n1`, `n2`, `n3` and 2 more"))
      << text;
}

TEST(DropsMarkdown, TotalsLeaveOutRowsOfNothing) {
  Drops drops = sample();
  FieldTally never;
  never.name = "traceback";
  never.absent = 2;
  never.reasons[static_cast<std::size_t>(Reason::kNeverMade)] = 2;
  drops.stages[0].fields.push_back(never);
  const std::string text = drops_markdown({drops}, DropGrouping::kPass, {});
  EXPECT_TRUE(holds(text, "| fx_joint | `stack_trace` | 2 |")) << text;
  EXPECT_FALSE(holds(text, "| empty_one |")) << text;
  EXPECT_FALSE(holds(text, "| `traceback` |")) << text;
  EXPECT_TRUE(holds(text, "Never made at any of these stages, so never lost: `traceback`.")) << text;
}

TEST(DropsMarkdown, UnitsWithoutAnySourceAreNamed) {
  Drops drops = sample();
  DropSite made_at;
  made_at.pass = static_cast<PassId>(1U);
  made_at.place = "mine.py:35 (f)";
  drops.sites.push_back(made_at);
  drops.orphans = {{static_cast<UnitId>(3U), 1, {static_cast<AttrId>(0U)}, true, {}},
                   {static_cast<UnitId>(4U), 1, {static_cast<AttrId>(0U)}, false, {static_cast<UnitId>(5U)}}};
  const std::string text = drops_markdown({drops}, DropGrouping::kPass, {});
  EXPECT_TRUE(holds(text, "at 1 place; 2 units made by a pass have no link to any source.**")) << text;
  EXPECT_TRUE(holds(text, "## Units that nothing links to a source\n")) << text;
  const std::string made = "pass `pass_pattern_0` / `slot` / `Mine` | `mine.py:35 (f)` | `stack_trace`";
  EXPECT_TRUE(holds(text, "| `n3` (c0.n3) | " + made + " |")) << text;
  EXPECT_TRUE(holds(text, "| `n4` (c0.n4) † | " + made + "; 1 unit made of it later lacks it too |")) << text;
  EXPECT_TRUE(holds(drops_section(drops, "##"), "| `n3` (c0.n3) | ")) << "the report has them too";
  drops.losses.clear();
  drops.orphans.resize(1);
  const std::string lossless = drops_markdown({drops}, DropGrouping::kPass, {});
  EXPECT_TRUE(holds(lossless, "**Nothing was lost; 1 unit made by a pass has no link to any source.**")) << lossless;
  drops.orphans[0].site = kNoIndex;
  EXPECT_TRUE(holds(drops_markdown({drops}, DropGrouping::kPass, {}), "lost; 1 unit has no link to any source.**"));
}

std::string row_of_mark(Mark mark, std::uint32_t field) {
  Drops drops = sample();
  drops.fields = {"stack_trace", "from_node"};
  mark.unit = static_cast<UnitId>(7U);
  mark.field = static_cast<AttrId>(field);
  mark.site = 0;
  drops.marks = {std::move(mark)};
  return drops_markdown({drops}, DropGrouping::kPass, {});
}

TEST(DropsMarkdown, AConflictSaysWhichFieldSaysWhat) {
  Mark mark;
  mark.quality = Quality::kConflict;
  mark.others = {static_cast<UnitId>(2U)};
  mark.given_up = {"mine.py:35"};
  mark.was = "mine.py:34";
  mark.now = "mine.py:35";
  mark.against = static_cast<AttrId>(0U);
  const std::string chain = row_of_mark(mark, 1);
  EXPECT_TRUE(holds(chain, "`from_node` leads to `n2` (`mine.py:35`), `stack_trace` says `mine.py:34`")) << chain;
  std::swap(mark.was, mark.now);
  mark.against = static_cast<AttrId>(1U);
  const std::string stack = row_of_mark(mark, 0);
  EXPECT_TRUE(holds(stack, "`stack_trace` says `mine.py:34`, `from_node` leads to `n2` (`mine.py:35`)")) << stack;
}

TEST(DropsMarkdown, SeveralSourcesAreNotOne) {
  Mark mark;
  mark.quality = Quality::kOverwritten;
  mark.evidence = "match";
  mark.sources = 3;
  mark.different = 2;
  mark.others = {static_cast<UnitId>(1U), static_cast<UnitId>(2U)};
  mark.given_up = {"m.py:1", "m.py:2"};
  mark.was = "m.py:1";
  mark.now = "m.py:9";
  mark.against = static_cast<AttrId>(1U);
  const std::string over = row_of_mark(mark, 0);
  EXPECT_TRUE(holds(over,
                    "says `m.py:9`, none of its 3 sources does (`m.py:1`, `m.py:2`): `n1`, `n2`; `from_node` is in "
                    "conflict with it, for that reason alone |"))
      << over;
  mark.quality = Quality::kCollapsed;
  mark.given_up = {"m.py:1"};
  mark.now = "m.py:2";
  const std::string part = row_of_mark(mark, 0);
  EXPECT_TRUE(holds(part, "3 sources say 2 different things; given up: `n1`, `n2` (`m.py:1`), kept: `m.py:2`")) << part;
}

}  // namespace
}  // namespace kerntrail::render
