#include <fmt/format.h>

#include <array>
#include <map>

#include "base/strings.h"
#include "render/drops_markdown.h"
#include "render/text.h"

namespace kerntrail::render {
namespace {

constexpr std::size_t kRows = 25;  // of one table; the JSON has all

// By Seam: what comes from what.
constexpr std::array<std::string_view, 4> kSeams{"printing: object to text", "reading: text to object",
                                                 "writing: object to file",
                                                 "after printing: text to file (reading or writing)"};

std::string summary(const RoundTrip& trip) {
  std::string out = fmt::format("{} of {} were followed: {} into its text", base::counted(trip.op_specs, "OpSpec"),
                                base::counted(trip.kernels, "kernel"), trip.printed);
  if (trip.reread > 0) out += fmt::format(", {} from the text to objects again", trip.reread);
  out += fmt::format(", {} into a file", trip.written);
  if (trip.reread == 0 && trip.written > 0) out += "; objects of the executed text were not recorded (level `borders`)";
  if (trip.losses.empty()) return out + (trip.breaks.empty() ? ". Nothing is lost or changed.\n" : ".\n");
  std::map<Seam, std::size_t> seams;
  for (const SeamLoss& loss : trip.losses) ++seams[loss.seam];
  std::vector<std::string> parts;
  for (const auto& [seam, n] : seams)
    parts.push_back(fmt::format(
        "{} by {}", base::counted(n, "field"),
        seam_name(seam) == "after_printing" ? std::string("reading or writing") : std::string(seam_name(seam))));
  return out + fmt::format(". **Lost or changed: {}.**\n", base::join(parts, ", "));
}

std::string row(const SeamLoss& loss) {
  std::string what = loss.changed ? fmt::format("{} became {}", md_code(loss.was), md_code(loss.now)) : "lost";
  const std::string unit =
      loss.unit_name.empty() ? md_code(loss.unit) : md_code(loss.unit_name) + " (" + loss.unit + ")";
  std::string where = md_code(loss.kernel_name);
  if (!loss.file_name.empty()) where += ", " + md_code(loss.file_name);
  return md_row({std::string(kSeams[static_cast<std::size_t>(loss.seam)]), md_code(loss.field), what, unit, where,
                 loss.place.empty() ? "—" : md_code(loss.place)});
}

}  // namespace

std::string round_trips_markdown(const std::vector<RoundTrip>& trips) {
  std::string out;
  for (const RoundTrip& trip : trips) {
    out += fmt::format("\n## OpSpecs, texts and files ({})\n\n{}", compile_name(trip.compile), summary(trip));
    if (!trip.losses.empty()) {
      out += "\n" + md_header({"Seam", "Field", "What", "OpSpec", "Kernel", "Line"});
      for (std::size_t i = 0; i < trip.losses.size() && i < kRows; ++i) out += row(trip.losses[i]);
      if (trip.losses.size() > kRows)
        out += fmt::format("\n{} more; `kerntrail drops --format json` lists all.\n", trip.losses.size() - kRows);
    }
    for (const SeamBreak& one : trip.breaks) {
      out += fmt::format("\nNothing can be said of {} at {}: {}.\n", md_code(one.kernel_name),
                         kSeams[static_cast<std::size_t>(one.seam)], md_text(one.reason));
    }
  }
  return out;
}

}  // namespace kerntrail::render
