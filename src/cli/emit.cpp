// `kerntrail emit`
#include <fmt/format.h>

#include <charconv>
#include <ostream>

#include "base/files.h"
#include "base/strings.h"
#include "cli/common.h"
#include "render/text.h"
#include "spyre/bundle.h"
#include "spyre/bundle_reader.h"

namespace kerntrail::cli {
namespace {

constexpr std::string_view kDescription =
    "Writes a Spyre bundle from OpSpecs, without Python: one SuperDSC file an operation, and bundle.mlir. OPSPECS is\n"
    "the JSON that generated wrappers hold and that kerntrail info --format specs prints "
    "(schemas/op_specs.schema.json).\n"
    "Layouts, places in memory and the split over cores are planned, unless --keep or --like takes them from the\n"
    "OpSpecs.";
constexpr std::string_view kExamples =
    "Examples:\n"
    "  kerntrail info OLD_BUNDLE --format specs -o specs.json      the OpSpecs of a bundle\n"
    "  kerntrail emit specs.json -o NEW_BUNDLE --like OLD_BUNDLE   the same files again\n"
    "  kerntrail emit specs.json -o NEW_BUNDLE --cores 8 --planned planned.json     laid out and divided anew\n"
    "  kerntrail validate NEW_BUNDLE --execute --specs planned.json                 do the files compute that?\n"
    "Exit status: 0 written; 2 usage; 3 OpSpecs that can't be read or carried, or files that can't be written.";

struct Options {
  std::string specs, output, planned, like, generation, cores;
  bool keep = false, op_in_names = false, force = false;
};

Expected<std::int64_t> cores_of(const std::string& text) {
  std::int64_t out = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  if (read.ec != std::errc() || read.ptr != end || out < 1 || out > spyre::kMaxCoresRead)
    return fail(ErrorCode::kUsage,
                fmt::format("--cores {}: a number from 1 to {} is needed", text, spyre::kMaxCoresRead));
  return out;
}

Expected<spyre::EmitOptions> emit_options(const Options& o, const std::vector<spyre::OpSpec>& specs) {
  spyre::EmitOptions out;
  out.generation = spyre::generation_of(specs);
  if (!o.like.empty()) {
    KERNTRAIL_TRY(const spyre::Bundle like, spyre::read_bundle(o.like));
    out = spyre::style_of(like);
  }
  if (!o.generation.empty()) {
    KERNTRAIL_TRY(out.generation, spyre::generation_from_name(o.generation));
  }
  if (!o.cores.empty()) {
    KERNTRAIL_TRY(out.max_cores, cores_of(o.cores));
  }
  if (o.keep) out.keep_splits = out.keep_device_side = true;
  if (o.op_in_names) out.op_in_file_names = true;
  KERNTRAIL_CHECK(spyre::check_emit_options(out));
  return out;
}

Expected<std::string> written(const Options& o, std::vector<spyre::Diagnostic>& diagnostics) {
  KERNTRAIL_TRY(const std::string text, base::read_file(o.specs));
  auto specs = spyre::parse_op_specs(text);
  if (!specs) {
    if (specs.error().path.empty()) specs.error().path = o.specs;
    return tl::unexpected<Error>(std::move(specs.error()));
  }
  if (specs->empty()) return fail(ErrorCode::kSchema, "holds no OpSpec, so there is nothing to write", o.specs);
  KERNTRAIL_TRY(const spyre::EmitOptions options, emit_options(o, *specs));
  // Files of another bundle would stay beside the new ones.
  if (!o.force && spyre::is_bundle(o.output))
    return fail(ErrorCode::kUsage, "is a bundle already: name another folder, or write into it with --force", o.output);
  if (!o.planned.empty()) {
    std::vector<spyre::OpSpec> planned = *specs;
    std::vector<spyre::Diagnostic> said_again;
    KERNTRAIL_CHECK(spyre::plan_bundle(planned, options, said_again));
    KERNTRAIL_CHECK(base::write_file(o.planned, spyre::print_op_specs(planned) + "\n"));
  }
  KERNTRAIL_TRY(const auto names, spyre::write_bundle(o.output, std::move(*specs), options, diagnostics));
  return fmt::format("{}: {}\n", render::visible(o.output), base::counted(names.size(), "file"));
}

}  // namespace

int run_emit(const std::vector<std::string>& arguments, Streams& streams) {
  Options o;
  Arguments parser("emit", kDescription, kExamples);
  parser.positional("OPSPECS", &o.specs, "File of OpSpecs (JSON)");
  parser.text("-o,--output", &o.output, "DIR", "The bundle's folder; it is made where it is missing");
  parser.text("--planned", &o.planned, "FILE", "Write the OpSpecs there too, as they were planned");
  parser.text("--like", &o.like, "BUNDLE",
              "Write as that bundle is written: generation, cores, file names; layouts and places as the OpSpecs say");
  parser.choice("--generation", &o.generation, {"early", "june", "july", "july-transform"},
                "Release of the format; without it july, or july-transform where a handle has a history");
  parser.text("--cores", &o.cores, "N", "Cores that work may be divided over; without it 32");
  parser.flag("--keep", &o.keep, "Take layouts, splits and addresses from the OpSpecs instead of planning them");
  parser.flag("--op-in-names", &o.op_in_names, "sdsc_0_add.json instead of sdsc_0.json");
  parser.flag("--force", &o.force, "Write into a folder that is a bundle already");
  if (auto ends = parser.parse(arguments)) return stop(*ends, streams);
  if (o.output.empty())
    return stop({kUsageError, "kerntrail emit: -o names the bundle's folder\nTry: kerntrail emit --help\n"}, streams);
  if (!o.cores.empty()) {
    if (const auto cores = cores_of(o.cores); !cores) return refuse("emit", cores.error(), streams);
  }
  std::vector<spyre::Diagnostic> diagnostics;
  const auto done = written(o, diagnostics);
  for (const spyre::Diagnostic& one : diagnostics)
    streams.err << fmt::format("kerntrail emit: {}: {} [{}]\n", render::visible(one.where),
                               render::visible(one.message), one.code);
  if (!done) return refuse("emit", done.error(), streams);
  streams.out << *done;
  return kDone;
}

}  // namespace kerntrail::cli
