#include "spyre/bundle_reader.h"

#include <filesystem>
#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "base/files.h"
#include "spyre/bundle.h"
#include "spyre/superdsc.h"
#include "spyre/test_specs.h"

namespace kerntrail::spyre {
namespace {

using testing::tensor;

const std::string kRoot = std::string(KERNTRAIL_SOURCE_DIR) + "/tests/data/sdsc/";

struct PublicBundle {
  const char* folder;
  std::size_t files;  // SuperDSC files; one bundle.mlir more
};

constexpr PublicBundle kPublic[] = {{"mlp_m512", 1},
                                    {"adds_then_matmul_512/0001_sdsc_fused_add_t_0", 4},
                                    {"adds_then_matmul_512/0002_sdsc_fused_mm_1", 1},
                                    {"swiglu_decode", 9}};

// Public files that are not written again, with the rule that is missing: "folder/file" -> rule. An entry that is
// written again after all fails the test.
const std::map<std::string, std::string> kNotYet{};

TEST(ReadBundle, WritingPublicFilesAgainGivesTheirBytes) {
  std::size_t same = 0;
  for (const PublicBundle& known : kPublic) {
    SCOPED_TRACE(known.folder);
    const Bundle bundle = read_bundle(kRoot + known.folder).value();
    EXPECT_FALSE(bundle.program_error);
    EXPECT_TRUE(bundle.unlisted.empty());
    ASSERT_EQ(bundle.entries.size(), known.files);
    const auto specs = op_specs_of(bundle);
    ASSERT_TRUE(specs) << specs.error().text();
    std::vector<Diagnostic> diagnostics;
    const auto files = render_bundle(*specs, style_of(bundle), diagnostics);
    ASSERT_TRUE(files) << files.error().text();
    ASSERT_EQ(files->size(), known.files + 1);
    for (const BundleFile& file : *files) {
      const std::string path = std::string(known.folder) + "/" + file.name;
      const std::string theirs = base::read_file(kRoot + path).value();
      const bool stale = file.content == theirs && kNotYet.count(path) != 0;
      EXPECT_FALSE(stale) << path << " is written again: take it off the list";
      if (kNotYet.count(path) != 0) continue;
      EXPECT_EQ(file.content, theirs) << path;
      same += file.content == theirs ? 1U : 0U;
    }
  }
  EXPECT_EQ(same + kNotYet.size(), 19U);
}

// The text form keeps all of it: files -> OpSpecs -> text -> OpSpecs -> files.
TEST(ReadBundle, RecoveredOpSpecsSurviveTheirTextForm) {
  for (const PublicBundle& known : kPublic) {
    const Bundle bundle = read_bundle(kRoot + known.folder).value();
    const std::vector<OpSpec> specs = op_specs_of(bundle).value();
    EXPECT_EQ(parse_op_specs(print_op_specs(specs)).value(), specs);
  }
}

TEST(ReadBundle, FindsTheBufferBehindAView) {
  const std::vector<OpSpec> specs = op_specs_of(read_bundle(kRoot + "swiglu_decode").value()).value();
  // mul reads the second half of what the first product made; neg and realdiv the first half.
  const TensorArg& made = specs[1].args[2];
  EXPECT_EQ(specs[6].args[1].name, made.name);
  EXPECT_EQ(specs[6].args[1].base, made.base);
  EXPECT_EQ(specs[6].args[1].device_coordinates[0], "floor(c0/64) + 200");
  EXPECT_EQ(specs[6].args[1].index, "c0 + 12800");
  EXPECT_EQ(specs[2].args[0].name, made.name);
  EXPECT_EQ(specs[5].args[0].name, made.name);
  EXPECT_EQ(made.arg_index, -1);
  // A place that is written anew holds another buffer.
  EXPECT_EQ(specs[2].args[1].base, specs[6].args[2].base);
  EXPECT_NE(specs[2].args[1].name, specs[6].args[2].name);
  EXPECT_GE(specs[8].args[2].arg_index, 0);
}

std::vector<OpSpec> emitted_specs() {
  const std::string index = "130*c0 + c1";
  OpSpec clip =
      testing::pointwise("clip", {48, 130}, {tensor("x", 0, {48, 130}, index), tensor("b", -1, {48, 130}, index)});
  clip.op_info = base::JsonObject{{"constants", base::JsonObject{{"clipMin", -1.5}, {"clipMax", 6.0}}}};
  clip.debug_handle = DebugHandle{};
  clip.debug_handle->ir_chain = {"relu", "buf0"};
  OpSpec product = testing::matmul(48, 70, 130, tensor("b", -1, {48, 130}, ""), "w", 1, true,
                                   tensor("c", -1, {48, 70}, "70*c0 + c1"));
  OpSpec add = testing::pointwise("add", {48, 70},
                                  {tensor("bias", 2, {70}, "c1"), tensor("c", -1, {48, 70}, "70*c0 + c1"),
                                   tensor("d", -1, {48, 70}, "70*c0 + c1")});
  OpSpec scale = testing::pointwise(
      "mul", {48, 70},
      {tensor("d", -1, {48, 70}, "70*c0 + c1"), tensor("two", 3, {1}, "0"), tensor("out", 4, {48, 70}, "70*c0 + c1")});
  return {clip, product, add, scale};
}

TEST(ReadBundle, WritingOurOwnBundlesAgainGivesTheirBytes) {
  for (const Generation generation :
       {Generation::kEarly, Generation::kJune, Generation::kJuly, Generation::kJulyTransform}) {
    for (const bool op_in_names : {false, true}) {
      EmitOptions options;
      options.generation = generation;
      options.op_in_file_names = op_in_names;
      std::vector<Diagnostic> diagnostics;
      const auto files = render_bundle(emitted_specs(), options, diagnostics).value();
      std::vector<std::pair<std::string, std::string>> texts;
      for (const BundleFile& file : files) texts.emplace_back(file.name, file.content);
      const Bundle bundle = bundle_of("ours", texts);
      const auto specs = op_specs_of(bundle);
      ASSERT_TRUE(specs) << specs.error().text();
      const auto again = render_bundle(*specs, style_of(bundle), diagnostics);
      ASSERT_TRUE(again) << again.error().text();
      EXPECT_EQ(*again, files) << generation_name(generation);
    }
  }
}

TEST(ReadBundle, RecognisesHowAFileIsWritten) {
  EXPECT_EQ(style_of(read_bundle(kRoot + "mlp_m512").value()).generation, Generation::kEarly);
  EXPECT_EQ(style_of(read_bundle(kRoot + "swiglu_decode").value()).generation, Generation::kJune);
  EXPECT_TRUE(style_of(read_bundle(kRoot + "mlp_m512").value()).op_in_file_names);
  const Bundle bundle = read_bundle(kRoot + "swiglu_decode").value();
  EmitOptions style = style_of(bundle);
  style.lx_addresses_as_numbers = true;
  std::vector<Diagnostic> diagnostics;
  const auto files = render_bundle(op_specs_of(bundle).value(), style, diagnostics).value();
  const auto content = decode_superdsc_text(files[4].content).value();
  EXPECT_TRUE(content.style.lx_addresses_as_numbers);
  EXPECT_EQ(superdsc_json(recover_op_spec(content).value(), 4, content.style).value(), files[4].content);
  EXPECT_NE(files[4].content, bundle.entries[4].text);
}

TEST(ReadProgram, RefusesWhatItCannotRun) {
  const auto error = [](const std::string& text) { return read_bundle_program(text).error(); };
  const std::string head = "module {\n\tfunc.func @sdsc_bundle() {\n";
  const auto run = [&](const std::string& name) {
    return head + "\t\tsdscbundle.sdsc_execute () {sdsc_filename=\"" + name + "\"}\n\t\treturn\n\t}\n}\n";
  };
  EXPECT_EQ(read_bundle_program(run("sdsc_0.json")).value(), std::vector<std::string>{"sdsc_0.json"});
  for (const char* name :
       {"../sdsc_0.json", "sdsc_/../../x.json", "/etc/passwd", "sdsc_.json", "x.json", "sdsc_0\".json"})
    EXPECT_EQ(error(run(name)).code, ErrorCode::kUnsupported) << name;
  EXPECT_EQ(error(run("/etc/passwd")).line, 3U);
  EXPECT_EQ(error(head).code, ErrorCode::kTorn);
  EXPECT_EQ(error("").code, ErrorCode::kSchema);
  EXPECT_EQ(error(run("sdsc_0.json") + "x").code, ErrorCode::kSchema);
  EXPECT_EQ(error("#map_0 = affine_map<(d0) -> (d0)>\n" + run("sdsc_0.json")).code, ErrorCode::kUnsupported);
}

TEST(ReadBundle, RefusesPathsThatLeadOut) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "kerntrail_bundle_reader";
  fs::remove_all(folder);
  fs::create_directories(folder / "bundle");
  const std::string outside = (folder / "outside.json").string();
  ASSERT_TRUE(base::write_file(outside, base::read_file(kRoot + "swiglu_decode/sdsc_2.json").value()));
  fs::create_symlink(outside, folder / "bundle" / "sdsc_0.json");
  fs::create_directories(folder / "bundle" / "sdsc_1.json");
  const auto bundle = read_bundle((folder / "bundle").string());
  ASSERT_TRUE(bundle) << bundle.error().text();
  ASSERT_EQ(bundle->entries.size(), 1U);
  ASSERT_TRUE(bundle->entries[0].error);
  EXPECT_EQ(bundle->entries[0].error->code, ErrorCode::kUnsupported);
  EXPECT_FALSE(is_bundle(folder.string()));
  EXPECT_EQ(read_bundle(folder.string()).error().code, ErrorCode::kSchema);
  EXPECT_EQ(read_bundle((folder / "none").string()).error().code, ErrorCode::kIo);
  EXPECT_FALSE(is_bundle((folder / "none").string()));
  fs::remove_all(folder);
}

TEST(ReadBundle, KeepsDamagedFilesAsEntries) {
  const std::string good = base::read_file(kRoot + "swiglu_decode/sdsc_2.json").value();
  const auto entry_of = [](std::string text) {
    return bundle_of("b", {{"sdsc_0.json", std::move(text)}}).entries.at(0);
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::map<std::string, std::string> damaged{
      {good.substr(0, good.size() / 2), ""},
      {"", ""},
      {replaced("\"out_\": 12800", "\"out_\": NaN"), ""},
      {replaced("\"out_\": 12800", "\"out_\": 99999999999999999999999"), "number"},
      {replaced("\"out_\": 12800", "\"out_\": 9223372036854775808"), ".N_.out_"},
      {replaced("\"out_\": 12800", "\"out_\": -12800"), ".N_.out_"},
      {replaced("\"out_\": 12800", "\"out_\": 12801"), ".N_.out_"},
      {replaced("\"numCoresUsed_\": 25", "\"numCoresUsed_\": 1152921504606846976"), ".numCoresUsed_"},
      {replaced("\"out\": 25", "\"out\": 0"), ".numWkSlicesPerDim_.out"},
      {replaced("\"209715200\"", "\"0x1\""), "[0, 0, 0]"},
      {replaced("\"209715200\"", "\"99999999999999999999\""), "[0, 0, 0]"},
      {replaced("\"coordinateMasking_\"", "\"N_\""), "duplicate"},
      {std::string(100'000, '['), ""}};
  for (const auto& [text, place] : damaged) {
    const BundleEntry entry = entry_of(text);
    ASSERT_TRUE(entry.error) << text.substr(0, 100);
    EXPECT_NE(entry.error->text().find(place), std::string::npos) << entry.error->text();
    EXPECT_EQ(entry.error->path, "sdsc_0.json");
    EXPECT_FALSE(entry.spec);
  }
  // Symbols, other formats and indirect access are said to be what they are.
  EXPECT_EQ(entry_of(replaced("\"209715200\"", "\"-1\"")).refusal->code, ErrorCode::kUnsupported);
  EXPECT_EQ(entry_of(replaced("SEN169_FP16", "SEN143_FP8")).refusal->code, ErrorCode::kUnsupported);
  EXPECT_EQ(entry_of(replaced("no_indirection", "index_tensor")).error->code, ErrorCode::kUnsupported);
  // Unknown keys are passed over, numbers may stand for decimal strings.
  EXPECT_TRUE(entry_of(replaced("\"coordinateMasking_\"", "\"later_\": [{}], \"coordinateMasking_\"")).spec);
  EXPECT_TRUE(entry_of(replaced("\"209715200\"", "209715200")).spec);
}

// A program may name one file a hundred thousand times.
TEST(ReadBundle, HoldsNoMoreThanItsLimit) {
  const std::string folder = kRoot + "swiglu_decode";
  std::size_t all = 0;
  const Bundle whole = read_bundle(folder).value();
  for (const BundleEntry& entry : whole.entries) all += entry.text.size();
  EXPECT_TRUE(read_bundle(folder, all));
  const auto refused = read_bundle(folder, all - 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(refused.error().path, folder);
}

}  // namespace
}  // namespace kerntrail::spyre
