// The baseline file: read with places in its errors, written with keys in a fixed order.
#include <fmt/format.h>

#include "base/json.h"
#include "base/json_place.h"
#include "kerntrail/gate.h"

namespace kerntrail {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kFormat = "kerntrail-gate-baseline";

class Reader {
 public:
  Reader(std::string_view text, std::string_view path) : text_(text), path_(path) {}

  Expected<GateBaseline> document(const base::Json& json) const {
    if (json["format"].as_string() != kFormat)
      return bad("format", fmt::format("is not \"{}\": not a baseline that kerntrail gate --update wrote", kFormat));
    if (!json["version"].is_int() || json["version"].as_int() < 1)
      return bad("version", "must be a whole number from 1 on");
    if (json["version"].as_int() > kVersion) {
      auto error =
          bad("version", fmt::format("is {}, and this build reads up to {}", json["version"].as_int(), kVersion));
      error.value().code = ErrorCode::kTooNew;
      return error;
    }
    GateBaseline out;
    if (!json["key"].is_object()) return bad("key", "must be an object of texts");
    for (const auto& [member, value] : json["key"].as_object()) {
      if (!value.is_string()) return bad("key." + member, "must be a text");
      out.key.emplace_back(member, value.as_string());
    }
    KERNTRAIL_CHECK(texts(json, out.sources));
    KERNTRAIL_CHECK(each(json, "coverage", &Reader::coverage, out.coverage));
    KERNTRAIL_CHECK(each(json, "losses", &Reader::loss, out.losses));
    KERNTRAIL_CHECK(each(json, "scores", &Reader::score, out.scores));
    if (!json["witnessed"].is_bool()) return bad("witnessed", "must be true or false");
    out.witnessed = json["witnessed"].as_bool();
    return out;
  }

 private:
  tl::unexpected<Error> bad(const std::string& place, std::string_view message) const {
    const base::TextPlace at = base::find_json(text_, place);
    return tl::unexpected<Error>(
        {ErrorCode::kSchema, fmt::format("{}: {}", place, message), path_, at.line, at.column});
  }
  Expected<void> text(const base::Json& item, const std::string& place, std::string_view member,
                      std::string& into) const {
    if (!item[member].is_string()) return bad(fmt::format("{}.{}", place, member), "must be a text");
    into = item[member].as_string();
    return {};
  }
  Expected<void> ratio(const base::Json& item, const std::string& place, std::string_view member, double& into) const {
    into = item[member].as_double(-1);
    if (!item[member].is_number() || !(into >= 0 && into <= 1))
      return bad(fmt::format("{}.{}", place, member), "must be a ratio from 0 to 1");
    return {};
  }
  Expected<void> texts(const base::Json& json, std::vector<std::string>& into) const {
    if (!json["sources"].is_array()) return bad("sources", "must be a list of texts");
    for (const base::Json& item : json["sources"].as_array()) {
      if (!item.is_string()) return bad(fmt::format("sources[{}]", into.size()), "must be a text");
      into.emplace_back(item.as_string());
    }
    return {};
  }
  Expected<void> coverage(const base::Json& item, const std::string& place, BaselineCoverage& row) const {
    KERNTRAIL_CHECK(text(item, place, "direction", row.direction));
    KERNTRAIL_CHECK(text(item, place, "stage", row.stage));
    KERNTRAIL_CHECK(text(item, place, "field", row.field));
    return ratio(item, place, "ratio", row.ratio);
  }
  Expected<void> loss(const base::Json& item, const std::string& place, BaselineLoss& row) const {
    KERNTRAIL_CHECK(text(item, place, "fingerprint", row.fingerprint));
    KERNTRAIL_CHECK(text(item, place, "rule", row.rule));
    KERNTRAIL_CHECK(text(item, place, "direction", row.direction));
    KERNTRAIL_CHECK(text(item, place, "field", row.field));
    KERNTRAIL_CHECK(text(item, place, "site", row.site));
    return ratio(item, place, "share", row.share);
  }
  Expected<void> score(const base::Json& item, const std::string& place, BaselineScore& row) const {
    KERNTRAIL_CHECK(text(item, place, "stage", row.stage));
    KERNTRAIL_CHECK(text(item, place, "class", row.unit_class));
    KERNTRAIL_CHECK(text(item, place, "evidence", row.evidence));
    KERNTRAIL_CHECK(text(item, place, "of", row.of));
    KERNTRAIL_CHECK(ratio(item, place, "precision", row.precision));
    return ratio(item, place, "recall", row.recall);
  }

  template <class Row>
  using Read = Expected<void> (Reader::*)(const base::Json&, const std::string&, Row&) const;
  template <class Row>
  Expected<void> each(const base::Json& json, std::string_view member, Read<Row> read, std::vector<Row>& into) const {
    if (!json[member].is_array()) return bad(std::string(member), "must be a list");
    for (const base::Json& item : json[member].as_array()) {
      const std::string place = fmt::format("{}[{}]", member, into.size());
      if (!item.is_object()) return bad(place, "must be an object");
      KERNTRAIL_CHECK((this->*read)(item, place, into.emplace_back()));
    }
    return {};
  }

  std::string_view text_;
  std::string path_;
};

}  // namespace

Expected<GateBaseline> parse_baseline(std::string_view text, std::string_view path) {
  const auto json = base::Json::parse(text, path);
  if (!json) {
    const base::TextPlace at = base::find_json_end(text);
    return tl::unexpected<Error>(
        {ErrorCode::kSyntax, "is not JSON: " + json.error().message, std::string(path), at.line, at.column});
  }
  if (!json->is_object()) return fail(ErrorCode::kSchema, "must be a JSON object", std::string(path), 1);
  return Reader(text, path).document(*json);
}

std::string baseline_json(const GateBaseline& baseline) {
  base::JsonArray sources;
  base::JsonArray coverage;
  base::JsonArray losses;
  base::JsonArray scores;
  base::Json key{base::JsonObject{}};
  for (const auto& [member, value] : baseline.key) key.set(member, value);
  for (const std::string& file : baseline.sources) sources.push_back(file);
  for (const BaselineCoverage& row : baseline.coverage)
    coverage.push_back(base::JsonObject{
        {"direction", row.direction}, {"stage", row.stage}, {"field", row.field}, {"ratio", row.ratio}});
  for (const BaselineLoss& row : baseline.losses) {
    losses.push_back(base::JsonObject{{"fingerprint", row.fingerprint},
                                      {"rule", row.rule},
                                      {"direction", row.direction},
                                      {"field", row.field},
                                      {"site", row.site},
                                      {"share", row.share}});
  }
  for (const BaselineScore& row : baseline.scores) {
    scores.push_back(base::JsonObject{{"stage", row.stage},
                                      {"class", row.unit_class},
                                      {"evidence", row.evidence},
                                      {"of", row.of},
                                      {"precision", row.precision},
                                      {"recall", row.recall}});
  }
  const base::Json out(base::JsonObject{{"format", kFormat},
                                        {"version", kVersion},
                                        {"key", std::move(key)},
                                        {"sources", std::move(sources)},
                                        {"coverage", std::move(coverage)},
                                        {"losses", std::move(losses)},
                                        {"witnessed", baseline.witnessed},
                                        {"scores", std::move(scores)}});
  return out.dump(2) + "\n";
}

}  // namespace kerntrail
