// Files of intents, and those that are built in.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyse/intents.h"
#include "capture_builder.h"
#include "kerntrail/drops.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;

TEST(Intents, ErrorsNameThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"([])", "must be an object"},
      {R"({"intents":{}})", "intents: must be a list"},
      {R"({"intent":[]})", "intent: is no member"},
      {R"({"version":2,"intents":[]})", "version: must be 1"},
      {R"({"intents":[1]})", "intents[0]: must be an object"},
      {R"({"intents":[{"pass":"x","kind":"removes","reason":"r"},{"pass":"x"}]})", "intents[1]: \"kind\" is missing"},
      {R"({"intents":[{"pass":"","kind":"removes","reason":"r"}]})", "intents[0].pass: must be a text"},
      {R"({"intents":[{"pass":"x","kind":"hides","reason":"r"}]})", "intents[0].kind: must be \"synthesises\""},
      {R"({"intents":[{"pass":"x","kind":"removes","reason":"r","why":"?"}]})", "intents[0].why: is no member"},
      {R"({"intents":[{"pass":"x","kind":"removes","reason":"r","fields":["a"]}]})", "intents[0].fields: belongs to"},
      {R"({"intents":[{"pass":"x","kind":"remaps","reason":"r","fields":["a",2]}]})", "intents[0].fields[1]: must be"},
  };
  for (const auto& [text, message] : cases) {
    const auto parsed = parse_intents(text, "mine.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kSchema) << text;
    EXPECT_NE(parsed.error().text().find("mine.json"), std::string::npos);
    EXPECT_NE(parsed.error().message.find(message), std::string::npos) << parsed.error().message;
  }
  EXPECT_EQ(parse_intents("{", "mine.json").error().code, ErrorCode::kSyntax);
  EXPECT_TRUE(parse_intents(R"({"intents":[]})", "")->empty());
}

TEST(Intents, PassesAreNamedByThePathThatDropsShows) {
  CaptureBuilder b;
  const GraphId graph = b.graph(b.compile("inductor"), "fx", "inference");
  PassId around = PassId::kNone;
  for (const auto& [name, kind] : std::vector<std::pair<std::string, PassKind>>{
           {"post_grad_passes", PassKind::kStage}, {"custom / Mine", PassKind::kPass}, {"inner_7", PassKind::kPass}}) {
    Pass pass;
    pass.graph = graph;
    pass.name = name;
    pass.kind = kind;
    pass.parent = around;
    around = b.recorder().begin_pass(pass);
  }
  const Capture capture = b.finish();
  const auto named = [&](const std::string& pass) {
    Intent intent;
    intent.pass = pass;
    const analyse::IntentTable table(capture, {intent});
    std::string found;
    for (std::size_t p = 0; p < capture.passes.size(); ++p)
      found += table.find(IntentKind::kSynthesises, id_at<PassId>(p), {}, {}, {}) == kNoIndex ? '-' : 'x';
    EXPECT_EQ(idle_intents(capture, {intent}).empty(), found != "---") << pass;
    return found;
  };
  EXPECT_EQ(named("inner_7"), "--x");
  EXPECT_EQ(named("custom / Mine / inner_7"), "--x");
  EXPECT_EQ(named("`custom / Mine` / `inner_7`"), "--x") << "as copied";
  EXPECT_EQ(named("Mine / inner_*"), "--x");
  EXPECT_EQ(named("custom / Mine"), "-x-") << "not what is within it";
  EXPECT_EQ(named("custom"), "-x-");
  EXPECT_EQ(named("Mine"), "-x-");
  EXPECT_EQ(named("ine"), "---") << "whole parts only";
  EXPECT_EQ(named("post_grad_passes / custom"), "---") << "stages are not shown";
  EXPECT_EQ(named("post_grad_passes"), "x--");
}

TEST(Intents, BuiltInOnesDeclareNoKnownLoss) {
  for (const Intent& intent : builtin_intents()) {
    EXPECT_FALSE(intent.reason.empty());
    EXPECT_EQ(intent.origin, "built-in");
    for (std::string_view loses : {"pass_pattern_0", "fuse_seed_creation_pass", "group_batch_fusion_0",
                                   "binary_folding", "reinplace_inplaceable_ops", "post_grad_custom_pre_pass"})
      EXPECT_NE(intent.pass, loses);
  }
}

}  // namespace
}  // namespace kerntrail
