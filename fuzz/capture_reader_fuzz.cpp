// Fuzz target: bytes as a capture file, packed or not. The reader must give a capture or an error; what it gives must
// be safe to walk.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "read/capture_reader.h"
#include "read/info.h"

namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{8} << 20;  // keeps a compressed bomb from taking the fuzzer's time

// Touches everything an analysis may touch; an id that leads nowhere would be found by the sanitizers.
std::size_t walk(const kerntrail::Capture& capture) {
  using namespace kerntrail;
  std::size_t seen = 0;
  for (std::size_t i = 0; i < capture.snapshots.size(); ++i) {
    const SnapshotId at = id_at<SnapshotId>(i);
    seen += capture.snapshots_of(capture.compile_of(at), capture.snapshots[i].stage).size();
    for (const UnitId unit : capture.snapshots[i].units) {
      seen += unit_name(capture, unit).size();
      for (const auto& [attr, value] : capture.attrs_at(unit, at)) {
        seen += capture.text(value->text).size() + capture.text(value->python_type).size() +
                capture.text(value->repr).size();
        seen += capture.innermost_user(value->loc) ? 1U : 0U;
        for (const UnitId ref : value->refs) seen += unit_name(capture, ref).size();
        if (capture.at(unit, attr, at) != value) std::abort();
      }
    }
  }
  for (const Link& link : capture.links) seen += link.from.size() + link.to.size();
  for (const Claim& claim : capture.claims) seen += unit_name(capture, claim.kernel).size();
  return seen + read::capture_info(capture).units;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  kerntrail::read::ReadOptions options;
  options.max_bytes = kMaxBytes;
  for (const bool check_digests : {true, false}) {
    options.check_digests = check_digests;
    const auto capture = kerntrail::read::read_capture_text(bytes, "input", options);
    if (!capture && capture.error().message.empty()) std::abort();
    if (capture) static_cast<void>(walk(*capture));
  }
  return 0;
}
