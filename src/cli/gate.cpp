// `kerntrail gate`
#include "kerntrail/gate.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ostream>

#include "base/files.h"
#include "base/strings.h"
#include "cli/common.h"
#include "cli/gate_config.h"
#include "read/bundle_capture.h"
#include "render/gate.h"
#include "render/text.h"

namespace kerntrail::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kGateFailed = 1;
constexpr int kNotComparable = 4;
constexpr std::size_t kConfigLimit = std::size_t{1} << 20U;

constexpr std::string_view kDescription =
    "Fails where a capture loses more provenance than kerntrail.toml lets it, or more than the baseline has. Rules "
    "are\n"
    "ratios, never counts: how many of a stage's units have a field, which kinds of loss there may be, how far the\n"
    "compiler's claims hold against the witness, whether hooks worked. What is missing, torn, partial or was not\n"
    "observed is never a pass.";
constexpr std::string_view kExamples =
    "A kerntrail.toml:\n"
    "  [[coverage]]                       every operation carries origins\n"
    "  stages = \"ir_post_pass\"\n"
    "  fields = \"origins\"\n"
    "  min = 1.0\n"
    "  [[drops]]                          nothing is written over\n"
    "  classes = [\"overwritten\", \"a\"]     words of kerntrail rules\n"
    "  [[allow]]                          but this one, for now\n"
    "  rule = \"dropped\"\n"
    "  pass = \"pass_pattern_*\"\n"
    "  reason = \"reported upstream\"\n"
    "  owner = \"compiler team\"\n"
    "  expires = 2027-01-31\n\n"
    "Examples:\n"
    "  kerntrail gate run.ndjson                                       with ./kerntrail.toml\n"
    "  kerntrail gate run.ndjson --baseline base.json --update         accepts what is lost today\n"
    "  kerntrail gate run.ndjson --baseline base.json                  from then on only new losses fail\n"
    "  kerntrail gate run.ndjson --format github --sarif gate.sarif    in GitHub Actions\n\n"
    "Exit status: 0 passed; 1 failed; 2 usage; 3 capture, configuration or baseline unreadable or too new; 4 the\n"
    "baseline is of another model, backend, torch or level. docs/ci.md has workflows.";

struct Options {
  CommonOptions common;
  std::string config = "kerntrail.toml", baseline, today, root;
  std::string format = "text";
  bool update = false, force = false;
  // Beside the main output.
  std::string json, md, sarif, junit;
};

using Render = std::string (*)(const GateResult&, const render::GateView&);

Render renderer(std::string_view format) {
  if (format == "json") return render::gate_json;
  if (format == "md") return render::gate_markdown;
  if (format == "sarif") return render::gate_sarif;
  if (format == "junit") return render::gate_junit;
  return format == "github" ? render::gate_github : render::gate_text;
}

std::optional<Stop> parse(const std::vector<std::string>& arguments, Options& o) {
  Arguments parser("gate", kDescription, kExamples);
  add_capture(parser, o.common);
  parser.text("--config", &o.config, "FILE", "What is asked; without it ./kerntrail.toml");
  parser.text("--baseline", &o.baseline, "FILE", "What was accepted before: only what is worse fails");
  parser.flag("--update", &o.update,
              "Write the baseline; it may only get better, so a capture that is worse is refused");
  parser.flag("--force", &o.force, "With --update: also where it gets worse, or is of another model");
  parser.choice("--format", &o.format, {"text", "json", "md", "sarif", "junit", "github"}, "Of the main output");
  parser.text("--json", &o.json, "FILE", "JSON there as well (schemas/gate.schema.json)");
  parser.text("--md", &o.md, "FILE", "Markdown for a pull request there as well");
  parser.text("--sarif", &o.sarif, "FILE", "SARIF 2.1.0 there as well");
  parser.text("--junit", &o.junit, "FILE", "JUnit XML there as well");
  parser.text("--root", &o.root, "DIR",
              "Folder of the repository: files are named from there; without it the current one");
  parser.text(
      "--today", &o.today, "DAY",
      "The day by which allow entries expire, YYYY-MM-DD; without it that of SOURCE_DATE_EPOCH, else of the clock");
  add_analysis(parser, o.common, false);
  return parser.parse(arguments);
}

std::string day_of(std::chrono::system_clock::time_point when) {
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(when)};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

bool is_day(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != 4 && i != 7 && (text[i] < '0' || text[i] > '9')) return false;
  }
  return true;
}

std::string today() {
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0') {
    char* end = nullptr;
    const long long seconds = std::strtoll(epoch, &end, 10);
    if (*end == '\0') return day_of(std::chrono::system_clock::time_point(std::chrono::seconds(seconds)));
  }
  return day_of(std::chrono::system_clock::now());
}

Expected<std::vector<Intent>> declared(const GateConfig& config) {
  if (config.intents.empty()) return std::vector<Intent>{};
  const std::string path = (fs::path(config.path).parent_path() / config.intents).string();
  KERNTRAIL_TRY(const auto text, base::read_file(path, kConfigLimit));
  return parse_intents(text, path);
}

// A gate that asks for nothing would pass anything.
Expected<GateConfig> config_of(const Options& o) {
  KERNTRAIL_TRY(const auto text, base::read_file(o.config, kConfigLimit));
  KERNTRAIL_TRY(auto config, parse_gate_config(text, o.config));
  if (config.coverage.empty() && config.drops.empty() && config.verified.empty() && o.baseline.empty())
    return fail(ErrorCode::kSchema,
                "asks for nothing: it has no [[coverage]], [[drops]] or [[verified]], and no --baseline is given",
                o.config);
  return config;
}

int not_comparable(const std::vector<GateMismatch>& mismatches, const Options& o, Streams& streams) {
  for (const GateMismatch& one : mismatches) {
    streams.err << fmt::format("kerntrail gate: {} is no baseline of this capture: {} is \"{}\" there, \"{}\" here\n",
                               render::visible(o.baseline), one.member, render::visible(one.there),
                               render::visible(one.here));
  }
  streams.err << "Let it differ with [baseline] ignore = [\"" << mismatches.front().member
              << "\"], or begin anew with --update --force\n";
  return kNotComparable;
}

// The main output and those beside it.
int write_all(const GateResult& result, const Options& o, Streams& streams) {
  std::error_code ignored;
  const render::GateView view{
      o.common.capture, o.config, o.baseline,
      o.root.empty() ? fs::current_path(ignored).string() : fs::absolute(o.root, ignored).lexically_normal().string()};
  const std::array<std::pair<const std::string*, Render>, 4> files{{{&o.json, render::gate_json},
                                                                    {&o.md, render::gate_markdown},
                                                                    {&o.sarif, render::gate_sarif},
                                                                    {&o.junit, render::gate_junit}}};
  for (const auto& [path, make] : files) {
    if (path->empty()) continue;
    CommonOptions to = o.common;
    to.output = *path;
    if (const int written = deliver(make(result, view), to, "gate", streams); written != kDone) return written;
  }
  if (const int written = deliver(renderer(o.format)(result, view), o.common, "gate", streams); written != kDone)
    return written;
  return result.passed ? kDone : kGateFailed;
}

class Gate {
 public:
  Gate(const Options& o, const Capture& capture, const GateConfig& config, std::vector<Intent> intents,
       Streams& streams)
      : o_(o), capture_(capture), config_(config), streams_(streams) {
    input_.today = o.today.empty() ? today() : o.today;
    input_.compile = o.common.analysis.compile;
    input_.intents = std::move(intents);
  }

  int run() {
    if (const auto exit = read_baseline()) return *exit;
    auto result = gate(capture_, config_, input_);
    if (!result) return refuse("gate", result.error(), streams_);
    if (o_.update) {
      if (const auto exit = update(*result)) return *exit;
      result = gate(capture_, config_, input_);
      if (!result) return refuse("gate", result.error(), streams_);
    }
    return write_all(*result, o_, streams_);
  }

 private:
  std::optional<int> read_baseline() {
    std::error_code ignored;
    const bool first = o_.update && !fs::exists(o_.baseline, ignored);
    if (o_.baseline.empty() || first) return std::nullopt;
    const auto text = base::read_file(o_.baseline);
    if (!text) return refuse("gate", text.error(), streams_);
    auto parsed = parse_baseline(*text, o_.baseline);
    if (!parsed) return o_.update && o_.force ? std::optional<int>() : refuse("gate", parsed.error(), streams_);
    baseline_ = std::move(*parsed);
    input_.baseline = &*baseline_;
    const auto mismatches = gate_mismatches(capture_, config_, input_);
    if (mismatches.empty()) return std::nullopt;
    if (!o_.update || !o_.force) return not_comparable(mismatches, o_, streams_);
    input_.baseline = nullptr;
    return std::nullopt;
  }

  std::optional<int> update(GateResult& result) {
    const auto refused = [&](std::string_view why) {
      streams_.err << fmt::format("kerntrail gate: {} is left as it is: {}\n", render::visible(o_.baseline), why);
      const int exit = write_all(result, o_, streams_);
      return exit == kDone ? kGateFailed : exit;
    };
    if (!result.whole) return refused("the capture is not whole, and nothing can be accepted from it");
    if (result.regressions > 0 && !o_.force) return refused("the capture is worse; --force accepts that");
    std::error_code ignored;
    if (fs::equivalent(o_.baseline, o_.common.capture, ignored) || fs::equivalent(o_.baseline, o_.config, ignored))
      return refuse("gate", Error{ErrorCode::kUsage, "--baseline names the capture or the configuration", o_.baseline},
                    streams_);
    const bool there = fs::exists(o_.baseline, ignored);
    const auto written = base::write_file(o_.baseline, baseline_json(result.measured));
    if (!written) return refuse("gate", written.error(), streams_);
    streams_.err << fmt::format("kerntrail gate: {} {}: {}, {}\n", there ? "updated" : "wrote",
                                render::visible(o_.baseline), base::counted(result.measured.coverage.size(), "ratio"),
                                base::counted(result.measured.losses.size(), "loss accepted", "losses accepted"));
    baseline_ = std::move(result.measured);
    input_.baseline = &*baseline_;
    return std::nullopt;
  }

  const Options& o_;
  const Capture& capture_;
  const GateConfig& config_;
  Streams& streams_;
  GateInput input_;
  std::optional<GateBaseline> baseline_;
};

}  // namespace

int run_gate(const std::vector<std::string>& arguments, Streams& streams) {
  Options o;
  if (auto ends = parse(arguments, o)) return stop(*ends, streams);
  const auto wrong = [&](std::string_view message) {
    return refuse("gate", Error{ErrorCode::kUsage, std::string(message)}, streams);
  };
  if (o.update && o.baseline.empty()) return wrong("--update needs --baseline FILE: what is to be written?");
  if (o.force && !o.update) return wrong("--force belongs to --update");
  if (!o.today.empty() && !is_day(o.today)) return wrong("--today must be a day, YYYY-MM-DD");
  const auto config = config_of(o);
  if (!config) return refuse("gate", config.error(), streams);
  auto intents = declared(*config);
  if (!intents) return refuse("gate", intents.error(), streams);
  if (!read::bundles_in(o.common.capture).empty())
    return refuse("gate",
                  {ErrorCode::kUnsupported,
                   "is a bundle, not a capture: no compile was watched, so nothing can be passed; kerntrail validate "
                   "checks a bundle",
                   o.common.capture},
                  streams);
  const auto capture = load(o.common, "gate", streams);
  if (!capture) return refuse("gate", capture.error(), streams);
  return Gate(o, *capture, *config, std::move(*intents), streams).run();
}

}  // namespace kerntrail::cli
