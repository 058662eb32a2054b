// Thousands of damaged bundles, always the same ones: readers, validator and executor give an answer or an error.
#include <random>

#include <gtest/gtest.h>

#include "base/files.h"
#include "spyre/bundle.h"
#include "spyre/bundle_executor.h"
#include "spyre/bundle_reader.h"
#include "spyre/test_specs.h"
#include "spyre/validate.h"

namespace kerntrail::spyre {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using testing::tensor;

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

std::vector<std::pair<std::string, std::string>> small_bundle() {
  OpSpec product =
      testing::matmul(4, 64, 64, tensor("x", 0, {4, 64}, ""), "w", 1, true, tensor("h", -1, {4, 64}, "64*c0 + c1"));
  OpSpec add = testing::pointwise(
      "add", {4, 64},
      {tensor("b", 2, {64}, "c1"), tensor("h", -1, {4, 64}, "64*c0 + c1"), tensor("y", 3, {4, 64}, "64*c0 + c1")});
  add.debug_handle = DebugHandle{};
  EmitOptions options;
  options.max_cores = 2;
  std::vector<Diagnostic> diagnostics;
  std::vector<std::pair<std::string, std::string>> files;
  const std::vector<BundleFile> rendered = render_bundle({product, add}, options, diagnostics).value();
  for (const BundleFile& file : rendered) files.emplace_back(file.name, file.content);
  return files;
}

// What a bundle goes through, whatever it holds. Says whether it was read, valid and run.
struct Fate {
  bool read = false, valid = false, ran = false;
};

Fate put_through(std::vector<std::pair<std::string, std::string>> files) {
  Fate fate;
  const Bundle bundle = bundle_of("b", std::move(files));
  fate.valid = validate_bundle(bundle).empty();
  const auto specs = op_specs_of(bundle);
  fate.read = specs.has_value();
  if (!specs) {
    EXPECT_FALSE(specs.error().message.empty());
    return fate;
  }
  std::vector<Diagnostic> diagnostics;
  static_cast<void>(render_bundle(*specs, style_of(bundle), diagnostics));
  std::int64_t points = 0;
  for (const BundleEntry& entry : bundle.entries) points += executed_points(entry.content->model);
  if (points < 200'000) fate.ran = compare_bundle(bundle, *specs).has_value();
  return fate;
}

TEST(BundleMutation, Bytes) {
  Random random(20260601);
  const auto good = small_bundle();
  ASSERT_TRUE(put_through(good).valid && put_through(good).ran);
  std::size_t read = 0;
  for (int i = 0; i < 3000; ++i) {
    auto files = good;
    std::string& text = files[below(random, files.size())].second;
    for (std::size_t edits = 1 + below(random, 3); edits > 0; --edits) {
      const std::size_t at = below(random, text.size());
      switch (below(random, 4)) {
        case 0: text[at] = static_cast<char>(random() & 0xff); break;
        case 1: text.erase(at, 1 + below(random, 40)); break;
        case 2: text.insert(at, text.substr(below(random, text.size()), 30)); break;
        default: text.resize(at); break;
      }
      if (text.empty()) text = " ";
    }
    read += put_through(files).read ? 1U : 0U;
  }
  EXPECT_GT(read, 50U);     // many damages are to things that nobody reads
  EXPECT_LT(read, 2900U);
}

Json strange(Random& random) {
  static const std::vector<Json> kValues{Json(),
                                         Json(true),
                                         Json(0),
                                         Json(-1),
                                         Json(1),
                                         Json(64),
                                         Json(std::int64_t{1} << 62),
                                         Json(std::numeric_limits<std::int64_t>::min()),
                                         Json(1e300),
                                         Json(0.5),
                                         Json(""),
                                         Json("out"),
                                         Json("9223372036854775807"),
                                         Json("-9223372036854775808"),
                                         Json("lx"),
                                         Json(JsonArray{}),
                                         Json(JsonArray(40, Json(1))),
                                         Json(JsonObject{}),
                                         Json(JsonObject{{"-1", "64"}})};
  return kValues[below(random, kValues.size())];
}

// One member somewhere in the tree is replaced, taken away, doubled or swapped with its neighbour.
Json mutated(const Json& json, Random& random) {
  const bool leaf = !json.is_object() && !json.is_array();
  const std::size_t n = json.is_object() ? json.as_object().size() : json.as_array().size();
  if (leaf || n == 0 || below(random, 12) == 0) return strange(random);
  const std::size_t at = below(random, n);
  const auto edit = [&](auto items, const auto& inner) {
    switch (below(random, 10)) {
      case 0: items.erase(items.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 1: items.push_back(items[at]); break;
      case 2: std::swap(items[at], items[below(random, n)]); break;
      default: inner(items[at]); break;
    }
    return Json(std::move(items));
  };
  if (json.is_object())
    return edit(json.as_object(), [&](base::JsonMember& member) { member.second = mutated(member.second, random); });
  return edit(json.as_array(), [&](Json& item) { item = mutated(item, random); });
}

TEST(BundleMutation, Structure) {
  Random random(20260701);
  const auto good = small_bundle();
  std::size_t read = 0, invalid = 0, ran = 0;
  for (int i = 0; i < 4000; ++i) {
    auto files = good;
    std::string& text = files[below(random, 2)].second;
    Json document = Json::parse(text).value();
    for (std::size_t edits = 1 + below(random, 2); edits > 0; --edits) document = mutated(document, random);
    text = document.dump(2);
    const Fate fate = put_through(files);
    read += fate.read ? 1U : 0U;
    invalid += fate.valid ? 0U : 1U;
    ran += fate.ran ? 1U : 0U;
  }
  EXPECT_GT(read, 200U);
  EXPECT_GT(ran, 100U);
  EXPECT_GT(invalid, 2500U);
}

}  // namespace
}  // namespace kerntrail::spyre
