// The form and the rules of sidecars, and what one compile makes of itself.
#include "spyre/sidecar.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/json.h"
#include "base/strings.h"
#include "spyre/sidecar_rules.h"
#include "spyre/test_sidecars.h"
#include "spyre/test_specs.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using testing::fixture;
using testing::fixture_text;

const std::string kCompile = "3acd1120e2323fa1fec28f1ff89a59da68cda82541b0a19815ec47a2c922ac0e";
const std::string kOther = "5254e3a133789eb4c69299ed3772ff7a5faf46ed1a2be57871fe8a0f068f52cd";
const std::string kOccurrence = "9defcebc8e4505ae8ce0699292e7841f7e0c9d8dbfae401b797e415ff7176ef0";

// "/handles/101/id" as a path for changed().
std::vector<std::string> steps(const std::string& pointer) {
  std::vector<std::string> out;
  for (const std::string_view part : base::split(std::string_view(pointer).substr(1), '/')) out.emplace_back(part);
  return out;
}

Json with(const std::string& name, const std::string& pointer, const Json& value) {
  return testing::changed(Json::parse(fixture_text(name)).value(), steps(pointer), [&](const Json&) { return value; });
}

Error error_of(const Json& document) {
  const std::string text = document.dump(2);
  const auto read = parse_sidecar(text, "s.json");
  EXPECT_FALSE(read) << text.substr(0, 500);
  return read ? Error{ErrorCode::kIo, "was taken", ""} : read.error();
}

TEST(Sidecar, PublicFixturesAreReadAndWrittenAgain) {
  const Json manifest = Json::parse(fixture_text("fixture_manifest.json")).value();
  ASSERT_EQ(manifest["valid"].as_array().size(), 2U);
  for (const Json& entry : manifest["valid"].as_array()) {
    const std::string name(entry["path"].as_string());
    const Sidecar read = fixture(name);
    EXPECT_EQ(sidecar_to_json(read).sorted(), Json::parse(fixture_text(name)).value().sorted()) << name;
    const std::string text = print_sidecar(read);
    EXPECT_EQ(print_sidecar(parse_sidecar(text).value()), text) << name;
    EXPECT_TRUE(text.ends_with("}\n"));
  }
}

TEST(Sidecar, PublicMutationsGiveTheNamedDiagnostics) {
  const Json manifest = Json::parse(fixture_text("fixture_manifest.json")).value();
  ASSERT_EQ(manifest["invalid"].as_array().size(), 8U);
  for (const Json& entry : manifest["invalid"].as_array()) {
    const Json& mutation = entry["mutation"];
    const Json document =
        with(std::string(entry["base"].as_string()), std::string(mutation["path"].as_string()), mutation["value"]);
    const Error error = error_of(document);
    EXPECT_EQ(sidecar_diagnostic(error.code), entry["expectedReaderDiagnostic"].as_string())
        << entry["name"].as_string() << ": " << error.text();
    EXPECT_GT(error.line, 0U) << error.text();
  }
}

TEST(Sidecar, IdsAreTheCheckedOnes) {
  const std::vector<std::pair<std::string, std::string>> kernels{{"sdsc_fused_linear_relu_0", "atqydvnuutl766na"},
                                                                 {"sdsc_fused_unknown_1", "vsancadvtjfcq6cv"}};
  EXPECT_EQ(compile_id(kernels), kCompile);
  EXPECT_EQ(compile_id({{"sdsc_fused_linear_relu_1", "atqydvnuutl766na"}}), kOther);
  EXPECT_EQ(occurrence_id(kCompile, "sdsc_fused_linear_relu_0", "atqydvnuutl766na"), kOccurrence);
}

struct Case {
  std::string pointer;
  Json value;
  ErrorCode code;
  std::string place;  // of the message, behind "sidecar."
};

TEST(Sidecar, SchemaIsClosedAndTyped) {
  const std::string projection = "/upstreamProjections/" + kCompile;
  const std::string identity = "/kernelIdentities/atqydvnuutl766na";
  const ErrorCode schema = ErrorCode::kSchema;
  const std::vector<Case> cases{
      {"/schemaVersion", "1", schema, "schemaVersion is missing or no integer"},
      {"/schemaVersion", true, schema, "schemaVersion is missing or no integer"},
      {"/schemaVersion", 0, ErrorCode::kTooNew, "schemaVersion is 0"},
      {"/eventKey/width", 12, schema, "eventKey.width is no integer from 16 to 16"},
      {"/eventKey/more", 1, schema, "eventKey.more is no member"},
      {"/mergeGeneration", 0, schema, "mergeGeneration is no integer from 1"},
      {"/mergeGeneration", 1.5, schema, "mergeGeneration is no integer from 1"},
      {"/status", "fine", schema, "status is none of complete, partial"},
      {"/diagnostics/collection-failure", 0, schema, "diagnostics.collection-failure is no integer from 1"},
      {"/diagnostics/other", 1, schema, "diagnostics.other is no member"},
      {"/handles", JsonArray{}, schema, "handles is no object"},
      {"/handles/x1", JsonObject{}, schema, "handles.x1 stands under a key"},
      {"/handles/101/source/start_line", -1, schema, "handles.101.source.start_line is no integer"},
      {"/handles/101/source/file", nullptr, schema, "handles.101.source.file is no string"},
      {"/handles/101/source/file", std::string("a\0b", 3), schema, "handles.101.source.file holds a NUL"},
      {"/handles/101/ir_chain", JsonArray{1}, schema, "handles.101.ir_chain[0] is no string"},
      {"/handles/200/fused_from", JsonArray{"101", "101"}, schema, "handles.200.fused_from says something twice"},
      {"/handles/200/transform_history/0/kind", "magic", schema, "handles.200.transform_history[0].kind is none of"},
      {identity + "/specHandleBindings/0/specPath/0", -1, schema, "specPath[0] is no integer from 0"},
      {"/kernelIdentities/short", JsonObject{}, schema, "kernelIdentities.short stands under a key"},
      {"/kernelOccurrences/" + kOccurrence + "/selector", "", schema, "selector is empty"},
      {"/kernelOccurrences/" + kOccurrence + "/registrations/0/ordinal", 0, schema, "ordinal is no integer from 1"},
      {projection + "/version", 3.0, schema, "version is not 2.0"},
      {projection + "/upstreamJoin", "perhaps", schema, "upstreamJoin is no known state"},
      {projection + "/upstreamProjectionFailed", 0, schema, "upstreamProjectionFailed is no boolean"},
      {projection + "/settings/extra", 0, schema, "settings.extra is no member"},
      {projection + "/preToPost/linear", "permute", schema, "preToPost.linear is no array"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.pointer);
    const Error error = error_of(with("valid_v1.json", c.pointer, c.value));
    ASSERT_EQ(error.code, c.code) << c.pointer << ": " << error.text();
    EXPECT_NE(error.message.find(c.place), std::string::npos) << c.pointer << ": " << error.text();
    EXPECT_GT(error.line, 0U) << error.text();
  }
  const Json whole = Json::parse(fixture_text("valid_v1.json")).value();
  for (const auto& [key, value] : whole.as_object()) {
    JsonObject without = whole.as_object();
    std::erase_if(without, [&](const base::JsonMember& member) { return member.first == key; });
    EXPECT_EQ(error_of(without).code, ErrorCode::kSchema) << key;
  }
}

TEST(Sidecar, ContradictionsAreNamed) {
  const std::string projection = "/upstreamProjections/" + kCompile;
  const std::string identity = "/kernelIdentities/atqydvnuutl766na";
  const std::string occurrence = "/kernelOccurrences/" + kOccurrence;
  const ErrorCode semantic = ErrorCode::kReference;
  const std::vector<Case> cases{
      {"/handles/101/id", "102", semantic, "handles.101.id is 102"},
      {"/handles/101/fused_from", JsonArray{"7"}, semantic, "handles.101.fused_from[0] names handle 7"},
      {"/handles/101/fused_from", JsonArray{"200"}, semantic, "leads back to the handle itself"},
      {"/handles/101/fused_from", JsonArray{"101"}, semantic, "leads back to the handle itself"},
      {"/handles/102/aten_op", "aten.gelu.default", semantic, "atenOps is not what its handles"},
      {identity + "/directHandleIds", JsonArray{}, semantic, "directHandleIds is not what specHandleBindings say"},
      {identity + "/specHandleBindings/1/handleId", "999", semantic, "specHandleBindings[1].handleId names a handle"},
      {identity + "/atenOps", JsonArray{"aten.relu.default", "aten.linear.default"}, semantic, "atenOps"},
      {identity + "/eventNameBase", "spyre_kernel_v1_fused_linear_relu_vsancadvtjfcq6cv", semantic, "another key"},
      {identity + "/eventNameBase", "spyre_kernel_v1_fused_linear_relu_atqydvnuutl766na#1", semantic, "has a step"},
      {identity + "/eventNameBase", "linear", semantic, "is no event name"},
      {occurrence + "/identityKey", "vsancadvtjfcq6cv", semantic, "stands under another id"},
      {occurrence + "/registrations/0/alias", "sdsc:1", semantic, "is not <kernel>:<ordinal>"},
      {occurrence + "/registrations/1", JsonObject{{"ordinal", 1}, {"alias", "sdsc_fused_linear_relu_0:1"}}, semantic,
       "is taken by another registration"},
      {projection + "/kernels/1",
       JsonObject{{"compilerKernelName", "sdsc_fused_linear_relu_0"}, {"identityKey", "atqydvnuutl766na"}}, semantic,
       "stands under another id"},
      {projection + "/uncollectedKernels", JsonArray{"sdsc_fused_unknown_1"}, semantic, "uncollectedKernels has"},
      {projection + "/uncollectedKernels", JsonArray{"b", "a"}, semantic, "is not sorted"},
      {projection + "/uncollectedKernels", JsonArray{"a"}, semantic, "diagnostics does not count"},
      {projection + "/upstreamProjectionFailed", true, semantic, "diagnostics does not count"},
      {projection + "/preToPost/linear", JsonArray{"mm"}, semantic, "postToPre is not the inverse"},
      {projection + "/postToCppCode/mm", JsonArray{}, semantic, "postToCppCode is not the inverse"},
      {projection + "/kernelStackTraces", JsonObject{}, semantic, "kernelStackTraces lacks"},
      {projection + "/cppCodeToPost/a", JsonArray{}, semantic, "stands behind a key it should come before"},
      {"/mergeGeneration", 1, ErrorCode::kIo, "was taken"}};
  for (const Case& c : cases) {
    const Json document = with("valid_v1.json", c.pointer, c.value);
    if (c.code == ErrorCode::kIo) {  // no rule is about it: the planted change that must pass
      EXPECT_TRUE(parse_sidecar(document.dump()));
      continue;
    }
    const Error error = error_of(document);
    ASSERT_EQ(error.code, c.code) << c.pointer << ": " << error.text();
    EXPECT_NE(error.message.find(c.place), std::string::npos) << c.pointer << ": " << error.text();
  }
}

TEST(Sidecar, HostileTextsAreRefusedWithTheirPlace) {
  const std::string good = fixture_text("valid_v1.json");
  const auto refused = [](const std::string& text) {
    const auto read = parse_sidecar(text, "s.json");
    EXPECT_FALSE(read) << text.substr(0, 80);
    return read ? Error{ErrorCode::kIo, "", ""} : read.error();
  };
  EXPECT_EQ(refused("").code, ErrorCode::kSyntax);
  EXPECT_EQ(refused("[]").text(), "s.json:1:1: sidecar is no object [schema]");
  EXPECT_EQ(refused("{}").code, ErrorCode::kSchema);
  const std::string deep =
      "{\"schemaVersion\": 1, \"handles\": " + std::string(2000, '[') + std::string(2000, ']') + "}";
  EXPECT_EQ(sidecar_diagnostic(refused(deep).code), "schema-validation-failure");
  std::string twice = good;
  twice.insert(twice.find("\"status\""), "\"status\": \"partial\",\n  ");
  EXPECT_EQ(refused(twice).code, ErrorCode::kSyntax);
  EXPECT_EQ(refused(twice).line, 11U) << refused(twice).text();
  std::string nul = good;
  nul.insert(nul.find("model.py"), 1, '\0');
  EXPECT_EQ(refused(nul).code, ErrorCode::kSyntax);
  EXPECT_GT(refused(nul).line, 0U);
  std::string latin = good;
  latin.insert(latin.find("model.py"), "\xff");
  EXPECT_EQ(refused(latin).code, ErrorCode::kSyntax);
  for (std::size_t n = 0; n < good.size() - 1; n += 97) refused(good.substr(0, n));
  const auto missing = read_sidecar("/nonexistent/s.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(sidecar_diagnostic(missing.error().code), "artifact-read-failure");
}

// A lineage as deep as nobody draws it: walked without the machine's stack, in both rules.
TEST(Sidecar, DeepLineageIsNoProblem) {
  Sidecar deep = fixture("valid_cache_replay_v1.json");
  constexpr int kDepth = 3000;
  for (int i = 0; i < kDepth; ++i) {
    const std::string id = std::to_string(1000 + i);
    deep.handles[id] = {id, {}, {}, {}, i == 0 ? Names{} : Names{std::to_string(999 + i)}, {}};
  }
  deep.handles["101"].fused_from = {std::to_string(999 + kDepth)};
  const auto read = parse_sidecar(print_sidecar(deep));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(reachable_handles(*read, {"101"}).size(), kDepth + 1U);
  deep.handles["1000"].fused_from = {"101"};
  EXPECT_EQ(misfit_of(deep)->problem, "leads back to the handle itself");
}

TEST(Sidecar, ErrorOfAHugeDocumentComesSoon) {
  Sidecar huge = fixture("valid_cache_replay_v1.json");
  for (int i = 0; i < 5000; ++i) {
    const std::string id = std::to_string(100000 + i);
    huge.handles[id] = {id, {}, {}, {"n"}, {}, {}};
  }
  huge.complete = true;
  const auto read = parse_sidecar(print_sidecar(huge), "s.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kReference);
  EXPECT_GT(read.error().line, 40000U);
}

// -- one compile ------------------------------------------------------------------------------------------------------

TEST(SidecarOfCompile, IsWhatTheReaderTakes) {
  OpSpec fused = testing::op_from_line(200, 18);
  fused.debug_handle->fused_from = {*testing::op_from_line(101, 17, "aten.linear.default").debug_handle,
                                    *testing::op_from_line(102, 18).debug_handle};
  const Sidecar made = testing::sidecar(
      testing::tracked({testing::kernel("k0", {fused, testing::op_from_line(7, 3)}), testing::kernel("k1", {})}));
  const auto read = parse_sidecar(print_sidecar(made));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, made);
  EXPECT_FALSE(misfit_of(made, RuleSet::kWriter));
  EXPECT_TRUE(made.complete);
  EXPECT_EQ(made.handles.size(), 4U);
  const Projection& projection = made.projections.begin()->second;
  EXPECT_EQ(projection.join, UpstreamJoin::kOk);
  EXPECT_EQ(projection.pre_to_post, (NameLists{{"k0_pre", {"k0_node"}}, {"k1_pre", {"k1_node"}}}))
      << "only what leads to this compile's kernels";
  const KernelIdentity& identity = made.identities.at(projection.kernels[0].second);
  EXPECT_EQ(identity.event_base, "spyre_kernel_v1_fused_linear_relu_" + projection.kernels[0].second);
  EXPECT_EQ(identity.bindings, (std::vector<SpecBinding>{{{0}, "200"}, {{1}, "7"}}));
}

TEST(SidecarOfCompile, JoinSaysHowMuchOfTorchsMappingIsThere) {
  const auto join = [](const std::function<void(CompileRecord&)>& change) {
    CompileRecord compile = testing::tracked({testing::kernel("k0", {testing::op_from_line(7, 3)})});
    change(compile);
    const Sidecar made = testing::sidecar(compile);
    const Projection& projection = made.projections.begin()->second;
    EXPECT_FALSE(misfit_of(made, RuleSet::kWriter)) << misfit_of(made)->problem;
    EXPECT_EQ(projection.failed, made.diagnostics.contains("upstream-projection-failure"));
    return std::string(upstream_join_name(projection.join)) + (projection.failed ? " failed" : "");
  };
  EXPECT_EQ(join([](CompileRecord&) {}), "ok");
  EXPECT_EQ(join([](CompileRecord& c) { c.tracking_level = 0; }), "unavailable-provenance-level-0");
  EXPECT_EQ(join([](CompileRecord& c) { c.live_graph = false; }), "unavailable-cache-replay");
  EXPECT_EQ(join([](CompileRecord& c) { c.upstream = {}; }), "partial failed") << "nothing was registered";
  EXPECT_EQ(join([](CompileRecord& c) { c.upstream.stack_contexts.clear(); }), "partial failed");
  EXPECT_EQ(join([](CompileRecord& c) { c.upstream.kernel_to_post["k0:1"].push_back("x"); }), "partial failed")
      << "mapping and context disagree";
  EXPECT_EQ(join([](CompileRecord& c) { c.upstream.kernel_to_post["other:2"] = {"x"}; }), "ok") << "not ours";
  EXPECT_EQ(join([](CompileRecord& c) { c.upstream.kernel_to_post["k0"] = {"x"}; }), "ok") << "no alias";
}

TEST(SidecarOfCompile, OneKernelWithoutIdentityCostsNoOther) {
  OpSpec broken = testing::op_from_line(9, 4);
  broken.op_info = JsonObject{{"x", std::numeric_limits<double>::quiet_NaN()}};
  OpSpec clash = testing::op_from_line(7, 99);
  std::vector<std::string> reasons;
  const auto made = sidecar_of(testing::tracked({testing::kernel("good", {testing::op_from_line(7, 3)}),
                                                 testing::kernel("nan", {broken}),
                                                 testing::kernel("clash", {clash}),
                                                 {"empty", {}}}),
                               &reasons);
  ASSERT_TRUE(made);
  const Projection& projection = made->projections.begin()->second;
  EXPECT_EQ(projection.uncollected, (Names{"clash", "empty", "nan"}));
  ASSERT_EQ(projection.kernels.size(), 1U);
  EXPECT_EQ(reasons.size(), 3U);
  EXPECT_NE(reasons[1].find("clash: debug handle 7 stands for two different records"), std::string::npos);
  EXPECT_EQ(made->diagnostics.at("collection-failure"), 3);
  EXPECT_FALSE(made->complete);
  EXPECT_FALSE(misfit_of(*made, RuleSet::kWriter)) << misfit_of(*made)->problem;
}

TEST(SidecarOfCompile, AlikeKernelsShareAnIdentity) {
  const Sidecar made = testing::sidecar(testing::tracked(
      {testing::kernel("k0", {testing::op_from_line(7, 3)}), testing::kernel("k1", {testing::op_from_line(7, 3)})}));
  EXPECT_EQ(made.identities.size(), 1U);
  EXPECT_EQ(made.occurrences.size(), 2U);
}

}  // namespace
}  // namespace kerntrail::spyre
