// The analysis of a run in Markdown: the sections of the reference analysis, each sentence from the capture.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "render/markdown.h"
#include "render/outputs.h"
#include "render/text.h"
#include "render/wording.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kShown = 12;

std::string fraction(std::size_t n, std::size_t of) { return fmt::format("{}/{}", n, of); }

// "copied (12), generated (2)"
std::string how(const FieldOrigin& field) {
  if (field.derived) return "derived on demand, read through `origins`";
  std::vector<std::string> parts;
  const auto add = [&](std::string_view word, std::size_t n) {
    if (n > 0) parts.push_back(fmt::format("{} ({})", word, n));
  };
  add("traced", field.traced);
  add("copied", field.copied);
  add("generated", field.generated);
  add("written later", field.written);
  return parts.empty() ? "never" : base::join(parts, ", ");
}

std::string types(const FieldOrigin& field) {
  std::vector<std::string> parts;
  for (const auto& [name, n] : field.types) parts.push_back(fmt::format("{} ({})", md_code(name), n));
  return parts.empty() ? "—" : base::join(parts, ", ");
}

std::string makers(const FieldOrigin& field) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < field.makers.size() && i < 3; ++i) parts.push_back(md_code(field.makers[i]));
  if (field.makers.size() > 3) parts.push_back(fmt::format("{} more", field.makers.size() - 3));
  return parts.empty() ? "—" : base::join(parts, ", ");
}

std::string coverage(const FieldOrigin& field) {
  std::vector<std::string> parts;
  for (const FieldOrigin::At& at : field.stages)
    parts.push_back(fmt::format("{} {}", md_text(at.title), fraction(at.present, at.units)));
  return parts.empty() ? "—" : base::join(parts, "; ");
}

std::string semantics(const AnalysisSection& section, const std::string& heading) {
  std::string out =
      heading +
      " Field semantics\n\nHow values came to be, over all units that ever have the field: *traced*: came "
      "with the first graph seen · *copied*: the unit was made with the value of a unit it was made from "
      "· *generated*: made with one that none of those had · *written later*: given to a unit that lived "
      "without it.\n\n";
  out += md_header({"Field", "Represents", "Observed types", "Values are", "Where they are made", "Coverage"});
  for (const FieldOrigin& field : section.fields) {
    const std::string_view meaning = field_meaning(field.field);
    out += md_row({md_code(field.field), meaning.empty() ? "—" : md_text(meaning), types(field), how(field),
                   makers(field), coverage(field)});
  }
  return out + "\n";
}

std::string plain(std::string_view text) { return visible(text); }

std::string loss_line(const FlowLoss& loss, std::size_t number) {
  std::string out = fmt::format("{} #{}: {} on {}", loss.wrong ? "≠ WRITTEN OVER" : "✗ LOST", number,
                                base::join(loss.fields, ", "), base::counted(loss.units, "unit"));
  return out + ", " + plain(loss.title);
}

// Losses are numbered through the section, in the order of the arrows.
std::string flow(const AnalysisSection& section, const std::string& heading) {
  std::string out = heading + " Metadata flow\n\n```text\n";
  std::size_t number = 0;
  for (std::size_t i = 0; i < section.flow.size(); ++i) {
    const FlowStage& stage = section.flow[i];
    if (i > 0) out += "        │\n";
    for (const FlowLoss& loss : stage.losses) out += fmt::format("        │   {}\n", loss_line(loss, ++number));
    if (stage.fresh > 0 && i > 0)
      out += fmt::format("        │   {} of {} {}s are new here\n", stage.fresh, stage.units, stage.noun);
    std::vector<std::string> fields;
    for (const auto& [field, n] : stage.fields) fields.push_back(fmt::format("{} {}", field, fraction(n, stage.units)));
    out += fmt::format("  {} ── {}: {}\n", plain(stage.title), base::counted(stage.units, stage.noun),
                       fields.empty() ? "no provenance field" : base::join(fields, ", "));
  }
  return out + "```\n\n";
}

std::string locations(const AnalysisSection& section, const std::string& heading) {
  std::string out = heading + " Exact drop locations\n\n";
  std::size_t number = 0;
  for (const FlowStage& stage : section.flow) {
    for (const FlowLoss& loss : stage.losses) {
      ++number;
      std::vector<std::string> names(loss.names.begin(), loss.names.end());
      std::string units = md_codes(names);
      if (loss.units > names.size()) units += fmt::format(" and {} more", loss.units - names.size());
      out += fmt::format("{}. **{}** ({}): {} {} on {}.", number, md_text(loss.title), md_text("into " + stage.title),
                         md_codes(loss.fields), loss.wrong ? "no longer say where it came from" : "lost", units);
      if (!loss.pattern.empty()) out += " Pattern " + md_code(loss.pattern) + ".";
      if (!loss.place.empty()) out += " At " + place_code(loss.place) + ".";
      if (!loss.evidence.empty()) out += fmt::format(" Evidence: {}.", loss.evidence);
      out += "\n";
    }
  }
  if (number == 0) out += "None was found.\n";
  return out +
         "\nReasons, qualities and what each unit was made of: `kerntrail drops`; one case: `kerntrail explain`.\n\n";
}

std::string files(const StageTable& table) {
  std::string out = fmt::format("{} in {}; {} of them parsed. ", base::counted(table.rows.size(), "file"),
                                base::counted(table.kernels, "bundle"), table.parsed);
  out += fmt::format("Key `debug_handle_` is in {} of the parsed ones, and holds something in {}.\n\n",
                     table.handle_present, table.handle_filled);
  std::vector<std::string> tracked;
  for (const std::string& field : table.observed) {
    if (!field_meaning(field).empty()) tracked.push_back(field);
  }
  out += tracked.empty() ? "No file has a key of the name of a provenance field.\n\n"
                         : fmt::format("Keys of the names of provenance fields: {}.\n\n", md_codes(tracked));
  return out;
}

std::string last_stage(const ReportSection& section, const std::string& heading) {
  const StageTable* last = nullptr;
  for (const StageTable& table : section.tables) {
    if (table.kind == TableKind::kFiles || (table.kind == TableKind::kKernels && last == nullptr)) last = &table;
  }
  if (last == nullptr) return {};
  std::string out = fmt::format("{} What {} really holds\n\n", heading,
                                last->kind == TableKind::kFiles ? "each file" : "each kernel");
  if (last->kind == TableKind::kFiles) out += files(*last);
  std::size_t described = 0;
  for (const KernelBlock& kernel : section.kernels) {
    if (described++ == kShown) {
      out += fmt::format("- and {} more kernels\n", section.kernels.size() - kShown);
      break;
    }
    out += fmt::format("- {}: {}", md_code(kernel.name), base::counted(kernel.buffers.size(), "buffer"));
    if (kernel.files > 0)
      out += fmt::format(", {}, {} with a handle", base::counted(kernel.files, "file"), kernel.handles);
    out += kernel.metadata.empty()
               ? "; no comment of the compiler's"
               : "; the compiler's comment: " + md_code(base::trim(base::cut(kernel.metadata, 300)));
    out += "\n";
  }
  return out + "\n";
}

std::string derivable(const AnalysisSection& section, const std::string& heading) {
  if (section.derivable.empty()) return {};
  std::string out = heading + " What a handle can be derived from\n\n";
  for (const Derivable& one : section.derivable) {
    out += fmt::format("**{}** ({}): {} of {} have a `debug_handle`. ", md_text(one.title),
                       base::counted(one.units, one.noun), one.have_handle, one.units);
    std::vector<std::string> carriers;
    for (const Carrier& carrier : one.carriers) {
      std::string text = fmt::format("{} {}", md_code(carrier.field), fraction(carrier.present, carrier.units));
      if (carrier.contradicted > 0)
        text += fmt::format(" (on {} contradicted in part by the witness)", carrier.contradicted);
      carriers.push_back(std::move(text));
    }
    out += carriers.empty() ? "Nothing of the operations behind them is left to derive one from.\n\n"
                            : "The operations behind them have " + base::join(carriers, ", ") + ".";
    if (carriers.empty()) continue;
    std::vector<std::string> through;
    for (const auto& [field, n] : one.through)
      through.push_back(fmt::format("{} {}", md_code(field), fraction(n, one.units)));
    if (!through.empty()) out += " Through the origins: " + base::join(through, ", ") + ".";
    const Carrier& best = one.carriers.front();
    out += best.present == one.units ? fmt::format(" {} is there on all of them.\n\n", md_code(best.field)) : "\n\n";
  }
  return out;
}

std::string caveats(const std::vector<Caveat>& all, const std::string& heading) {
  if (all.empty()) return {};
  std::string out = heading + "\n\n";
  for (const Caveat& caveat : all) out += fmt::format("- {}: {}.\n", md_code(caveat.code), md_text(caveat.text));
  return out + "\n";
}

}  // namespace

std::string analysis_markdown(const Analysis& analysis, const std::string& changes) {
  const Report& report = analysis.report;
  std::string out = fmt::format("# Analysis: {}\n\n", md_code(report.model_name));
  if (!report.stamp.empty()) out += "> Generated: " + md_text(report.stamp) + "\n\n";
  out +=
      "What the numbers of the audit report mean, written from the capture: every sentence is about what was seen in "
      "this one run, and is written anew with the next.\n\n";
  if (!changes.empty()) out += "## Changes since the previous run\n\n" + changes + "\n";
  std::size_t next = 0;
  const bool several = report.sections.size() > 1;
  for (const ReportSection& section : report.sections) {
    if (!section.observed) continue;
    const AnalysisSection& part = analysis.sections[next++];
    if (several)
      out += fmt::format("## Compile {}{}\n\n", compile_name(section.compile),
                         section.direction.empty() ? "" : ", " + md_text(section.direction));
    const std::string heading = several ? "###" : "##";
    out += semantics(part, heading) + flow(part, heading) + locations(part, heading) + last_stage(section, heading) +
           derivable(part, heading) + caveats(part.caveats, heading + " Caveats");
  }
  if (analysis.sections.empty()) out += "Nothing was observed: there is nothing to analyse.\n\n";
  out += caveats(analysis.caveats, "## Caveats of the run");
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

}  // namespace kerntrail::render
