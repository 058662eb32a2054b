// Golden cases: capture in, every rendered format out. KERNTRAIL_UPDATE_GOLDEN=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/files.h"
#include "base/json.h"
#include "cases.h"
#include "invariants.h"
#include "read/capture_reader.h"
#include "render/diff_text.h"
#include "render/drops_markdown.h"
#include "render/json_output.h"
#include "render/markdown.h"
#include "render/outputs.h"
#include "render/rules_text.h"
#include "render/verify_markdown.h"

namespace kerntrail {
namespace {

template <class T>
T need(Expected<T> value) {
  EXPECT_TRUE(value) << (value ? std::string() : value.error().text());
  return value ? std::move(*value) : T{};
}

std::map<std::string, std::string> rendered(const testing::Built& built) {
  const Capture& capture = built.capture;
  const auto all = need(matrices(capture));
  const auto ways = need(lineages(capture));
  const auto report = need(make_report(capture));
  std::map<std::string, std::string> files;
  files["capture.ndjson"] = built.ndjson;
  files["matrix.md"] = render::matrix_markdown(all);
  files["matrix.json"] = render::matrix_json(capture, all);
  files["matrix.csv"] = render::matrix_csv(all);
  files["lineage.txt"] = render::lineage_tree(capture, ways);
  files["lineage.md"] = render::lineage_markdown(ways);
  files["lineage.mmd"] = render::lineage_mermaid(ways);
  files["lineage.dot"] = render::lineage_dot(capture, ways);
  files["lineage.json"] = render::lineage_json(capture, ways);
  const auto lost = need(drops(capture));
  files["drops.md"] = render::drops_markdown(lost, DropGrouping::kPass, capture_state(capture));
  files["drops_by_line.md"] = render::drops_markdown(lost, DropGrouping::kLine, capture_state(capture));
  files["drops_by_unit.md"] = render::drops_markdown(lost, DropGrouping::kUnit, capture_state(capture));
  files["drops.json"] = render::drops_json(lost, DropGrouping::kPass, capture_state(capture));
  if (const auto verified = verify(capture)) {
    files["verify.md"] = render::verify_markdown(*verified, capture_state(capture));
    files["verify.json"] = render::verify_json(*verified, capture_state(capture));
  }
  std::vector<Explanation> explained;
  for (std::size_t i = 0; i < capture.units.size(); ++i) {
    if (capture.units[i].kind != UnitKind::kKernel) continue;
    auto some = explain(capture, unit_name(capture, id_at<UnitId>(i)));
    if (some) explained.insert(explained.end(), some->begin(), some->end());
  }
  files["explain.txt"] = render::explain_text(explained);
  files["explain.json"] = render::explain_json(explained);
  const auto analysis = need(make_analysis(capture));
  files["analysis.md"] = render::analysis_markdown(analysis, {});
  files["analysis.json"] = render::analysis_json(analysis);
  files["report.md"] = render::report_markdown(report);
  files["report.json"] = render::report_json(capture, report);
  files["raw.json"] = need(render::raw_export(capture));
  files["summary.txt"] = render::render_summary(capture, {"program", "batch=2", "raw.json", "report.md"});
  return files;
}

class Golden : public ::testing::TestWithParam<testing::GoldenCase> {};

TEST_P(Golden, EveryFormatIsAsKept) {
  const std::string folder = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/golden/" + GetParam().name + "/";
  const char* update = std::getenv("KERNTRAIL_UPDATE_GOLDEN");
  const testing::Built built = GetParam().build();
  testing::expect_invariants(built.capture);
  const auto files = rendered(built);
  EXPECT_EQ(files, rendered(GetParam().build())) << "two renderings of one run differ";
  for (const auto& [name, content] : files) {
    if (update != nullptr && std::string_view(update) == "1") {
      ASSERT_TRUE(base::write_file(folder + name, content));
    }
    const auto kept = base::read_file(folder + name);
    ASSERT_TRUE(kept) << kept.error().text();
    EXPECT_EQ(content, *kept) << folder << name;
  }
}

// Two captures compared: the reference model under both metadata rules, and two that are not comparable, in both orders.
TEST(GoldenDiff, EveryFormatIsAsKept) {
  const std::string root = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/";
  const auto load = [&](const std::string& name) { return need(read::read_capture(root + name)); };
  const struct {
    const char* name;
    const char* old;
    const char* now;
  } kPairs[] = {{"reference_repaired", "data/captures/reference_seed.ndjson.gz", "data/captures/reference_full.ndjson.gz"},
                {"reference_broken", "data/captures/reference_full.ndjson.gz", "data/captures/reference_seed.ndjson.gz"},
                {"unlike", "golden/stock_training/capture.ndjson", "data/captures/mlp.ndjson"},
                {"hostile", "data/captures/hostile.ndjson", "data/captures/mlp.ndjson"}};
  const char* update = std::getenv("KERNTRAIL_UPDATE_GOLDEN");
  for (const auto& pair : kPairs) {
    const Capture old = load(pair.old);
    const Capture now = load(pair.now);
    const Diff result = need(diff(old, now));
    const render::DiffNames names{"old.ndjson", "new.ndjson"};
    const std::map<std::string, std::string> files{{".md", render::diff_markdown(result, names)},
                                                   {".json", render::diff_json(result, names)}};
    EXPECT_EQ(files.at(".json"), render::diff_json(need(diff(old, now)), names));
    EXPECT_EQ(files.at(".md").find('\x1b'), std::string::npos);
    for (const auto& [suffix, content] : files) {
      const std::string path = root + "golden/diff/" + pair.name + suffix;
      if (update != nullptr && std::string_view(update) == "1") {
        ASSERT_TRUE(base::write_file(path, content));
      }
      const auto kept = base::read_file(path);
      ASSERT_TRUE(kept) << kept.error().text();
      EXPECT_EQ(content, *kept) << path;
    }
  }
}

// docs/rules.md is what `kerntrail rules` prints.
TEST(GoldenRules, TheDocumentIsTheTable) {
  const std::string path = std::string(KERNTRAIL_SOURCE_DIR) + "/docs/rules.md";
  const char* update = std::getenv("KERNTRAIL_UPDATE_GOLDEN");
  if (update != nullptr && std::string_view(update) == "1") {
    ASSERT_TRUE(base::write_file(path, render::rules_markdown()));
  }
  const auto kept = base::read_file(path);
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_EQ(*kept, render::rules_markdown());
  const auto json = base::Json::parse(render::rules_json());
  ASSERT_TRUE(json);
  std::map<std::string, std::size_t> words;
  for (const base::Json& rule : (*json)["rules"].as_array()) {
    ++words[std::string(rule["axis"].as_string())];
    for (const char* key : {"id", "meaning", "example", "action"}) EXPECT_FALSE(rule[key].as_string().empty()) << key;
  }
  EXPECT_EQ(words, (std::map<std::string, std::size_t>{{"reason", kReasons},
                                                       {"quality", kQualities},
                                                       {"fate", kFates},
                                                       {"observer", 5},
                                                       {"evidence", 14},
                                                       {"gate", 18},
                                                       {"witness", kSupports}}));
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(testing::golden_cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace kerntrail
