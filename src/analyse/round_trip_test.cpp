// A loss planted at each seam between OpSpecs, the text of their kernel and the files; the answer must name the seam,
// the field, the unit and the line.
#include "kerntrail/round_trip.h"

#include <gtest/gtest.h>

#include <optional>

#include "capture_builder.h"

namespace kerntrail {
namespace {

using testing::CaptureBuilder;
using Seen = CaptureBuilder::Seen;

const std::string kFirst =
    R"({"id":"17","source":{"file":"m.py","start_line":3,"start_col":0,"end_line":null},"aten_op":"aten.mm.default",)"
    R"("ir_chain":["mm","buf0"],"fused_from":[{"id":"5","aten_op":"aten.mm.default"},{"id":"6","aten_op":"aten.t.default"}]})";
const std::string kSecond =
    R"({"id":"18","source":null,"aten_op":"aten.relu.default","ir_chain":["relu","buf1"],"fused_from":[]})";

// The same as constructor calls, as a wrapper in which objects are written by their repr().
constexpr std::string_view kCalls =
    "async_compile.sdsc('k', [\n"
    "    OpSpec(op='batchmatmul', is_reduction=True, args=[TensorArg(dtype=torch.float16)], it={c0: (sympify('2'), "
    "1)},\n"
    "        debug_handle=DebugHandle(id=17, source=SourceLoc(file='m.py', start_line=3, start_col=0, end_line=None),\n"
    "            aten_op='aten.mm.default', ir_chain=('mm', 'buf0'), fused_from=(DebugHandle(id=5, source=None,\n"
    "            aten_op='aten.mm.default'), DebugHandle(id=6, source=None, aten_op='aten.t.default')))),\n"
    "    LoopSpec(count=2, body=[OpSpec(op='relufwd', is_reduction=False,\n"
    "        debug_handle=DebugHandle(id=18, source=None, aten_op='aten.relu.default', ir_chain=('relu', 'buf1')))]),\n"
    "])";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string records(const std::string& first, const std::string& second) {
  return R"([{"op":"batchmatmul","is_reduction":true,"debug_handle":)" + first +
         R"(},{"op":"relufwd","is_reduction":false,"debug_handle":)" + second + "}]";
}

// As repr() writes a str that holds no single quote.
std::string literal(const std::string& json) { return "async_compile.sdsc('k', '" + json + "')"; }

struct Planted {
  std::string text = literal(records(kFirst, kSecond));
  std::optional<std::string> reread = records(kFirst, kSecond);
  std::vector<std::optional<std::string>> files{kFirst, kSecond};
};

class RoundTripTest : public ::testing::Test {
 protected:
  RoundTrip judged(const Planted& planted) {
    const CompileId compile = b_.compile("kerntrail_spyre");
    const GraphId specs = b_.graph(compile, "op_spec"), kernels = b_.graph(compile, "kernel"),
                  bundle = b_.graph(compile, "bundle");
    for (UnitId& unit : specs_) unit = b_.unit(specs, UnitKind::kOpSpec);
    b_.snapshot("op_spec", specs,
                {b_.seen(specs_[0])
                     .text("name", "op0")
                     .text("op", "batchmatmul")
                     .json("is_reduction", "true")
                     .json("debug_handle", kFirst),
                 b_.seen(specs_[1])
                     .text("name", "op1")
                     .text("op", "relufwd")
                     .json("is_reduction", "false")
                     .json("debug_handle", kSecond)});
    const UnitId kernel = b_.unit(kernels, UnitKind::kKernel);
    std::vector<Seen> files;
    std::vector<UnitId> units;
    for (const auto& handle : planted.files) {
      units.push_back(b_.unit(bundle, UnitKind::kBundleFile));
      const std::string name = "sdsc_" + std::to_string(files.size()) + ".json";
      Seen seen = b_.seen(units.back()).stack_at("name", b_.frame("back_end.py", 30, "write"), name);
      handle ? seen.json("debug_handle", *handle) : seen.empty("debug_handle");
      files.push_back(seen);
    }
    if (!files.empty()) b_.snapshot("superdsc", bundle, files);
    Seen seen =
        b_.seen(kernel).text("name", "k").stack_at("source", b_.frame("back_end.py", 10, "print"), planted.text);
    if (planted.reread) seen.json("reread", *planted.reread);
    b_.recorder().link("print_op_specs", {specs_[0], specs_[1]}, {kernel});
    if (!units.empty()) b_.recorder().link("bundle_file", {kernel}, units);
    b_.snapshot("kernel", kernels, {seen});
    const Capture capture = b_.finish();
    const auto found = round_trips(capture);
    EXPECT_TRUE(found);
    EXPECT_EQ(found->size(), 1U);
    return found->front();
  }

  CaptureBuilder b_;
  UnitId specs_[2] = {UnitId::kNone, UnitId::kNone};
};

void expect_one(const RoundTrip& trip, Seam seam, std::string_view field, UnitId unit, bool changed = false) {
  ASSERT_EQ(trip.losses.size(), 1U);
  const SeamLoss& loss = trip.losses[0];
  EXPECT_EQ(seam_name(loss.seam), seam_name(seam));
  EXPECT_EQ(loss.field, field);
  EXPECT_EQ(loss.op_spec, unit);
  EXPECT_EQ(loss.changed, changed);
  EXPECT_EQ(loss.kernel_name, "k");
  EXPECT_TRUE(trip.breaks.empty());
}

TEST_F(RoundTripTest, NothingIsLost) {
  const RoundTrip trip = judged({});
  EXPECT_TRUE(trip.losses.empty() && trip.breaks.empty());
  EXPECT_EQ((std::vector{trip.kernels, trip.op_specs, trip.printed, trip.reread, trip.written}),
            (std::vector<std::size_t>{1, 2, 2, 2, 2}));
}

TEST_F(RoundTripTest, NothingIsLostInConstructorCallsAndLoops) {
  Planted planted;
  planted.text = kCalls;
  const RoundTrip trip = judged(planted);
  EXPECT_TRUE(trip.losses.empty() && trip.breaks.empty()) << trip.losses.front().field;
  EXPECT_EQ(trip.printed, 2U);
}

TEST_F(RoundTripTest, PrintingForgetsAHandle) {
  Planted planted;
  planted.text = literal(records(kFirst, "null"));
  planted.reread = records(kFirst, "null");
  planted.files[1] = std::nullopt;
  const RoundTrip trip = judged(planted);
  expect_one(trip, Seam::kPrinting, "debug_handle", specs_[1]);
  EXPECT_EQ(trip.losses[0].unit_name, "op1");
  EXPECT_EQ(trip.losses[0].place, "back_end.py:10 (print)");
}

TEST_F(RoundTripTest, PrintingForgetsOneFieldOfACall) {
  Planted planted;
  planted.text =
      replaced(std::string(kCalls), "source=SourceLoc(file='m.py', start_line=3, start_col=0, end_line=None),", "");
  planted.reread.reset();
  planted.files.clear();
  const RoundTrip trip = judged(planted);
  expect_one(trip, Seam::kPrinting, "debug_handle.source", specs_[0]);
}

TEST_F(RoundTripTest, PrintingExchangesOperations) {
  Planted planted;
  planted.text = replaced(planted.text, "relufwd", "add");
  planted.reread = replaced(*planted.reread, "relufwd", "add");
  const RoundTrip trip = judged(planted);
  expect_one(trip, Seam::kPrinting, "op", specs_[1], true);
  EXPECT_EQ(trip.losses[0].was + ">" + trip.losses[0].now, "relufwd>add");
}

TEST_F(RoundTripTest, ReadingDropsAField) {
  Planted planted;
  planted.reread = replaced(*planted.reread, R"("aten_op":"aten.relu.default",)", "");
  planted.files[1] = replaced(kSecond, R"("aten_op":"aten.relu.default",)", "");
  const RoundTrip trip = judged(planted);
  expect_one(trip, Seam::kReading, "debug_handle.aten_op", specs_[1]);
}

TEST_F(RoundTripTest, WritingDropsAHandleOrAPartOfOne) {
  Planted planted;
  planted.files[0] = replaced(kFirst, R"({"id":"6","aten_op":"aten.t.default"})", R"({"id":"6","aten_op":null})");
  const RoundTrip trip = judged(planted);
  expect_one(trip, Seam::kWriting, "debug_handle.fused_from[1].aten_op", specs_[0]);
  EXPECT_EQ(trip.losses[0].file_name, "sdsc_0.json");
  EXPECT_EQ(trip.losses[0].place, "back_end.py:30 (write)");
}

TEST_F(RoundTripTest, ConstituentsThatGoAreOneChange) {
  Planted planted;
  planted.files[0] = replaced(kFirst, R"(,{"id":"6","aten_op":"aten.t.default"})", "");
  const RoundTrip trip = judged(planted);
  expect_one(trip, Seam::kWriting, "debug_handle.fused_from", specs_[0], true);
}

TEST_F(RoundTripTest, WithoutTheExecutedObjectsTheLaterSeamsAreOne) {
  Planted planted;
  planted.reread.reset();
  planted.files[0] = std::nullopt;
  const RoundTrip trip = judged(planted);
  expect_one(trip, Seam::kAfterPrinting, "debug_handle", specs_[0]);
  EXPECT_EQ(trip.reread, 0U);
}

TEST_F(RoundTripTest, SidesThatDoNotBelongTogetherAreNotCompared) {
  Planted planted;
  planted.text = literal(R"([{"op":"batchmatmul"}])");
  RoundTrip trip = judged(planted);
  EXPECT_TRUE(trip.losses.empty());
  ASSERT_EQ(trip.breaks.size(), 1U);
  EXPECT_EQ(trip.breaks[0].reason, "its text holds 1 OpSpec, 2 were made");
  EXPECT_EQ(trip.printed + trip.reread + trip.written, 0U);
}

TEST_F(RoundTripTest, ATextThatCanNotBeReadSaysSo) {
  Planted planted;
  planted.text = "async_compile.sdsc('k', [";
  const RoundTrip trip = judged(planted);
  ASSERT_EQ(trip.breaks.size(), 1U);
  EXPECT_TRUE(trip.breaks[0].reason.starts_with("its text can't be read: "));
  EXPECT_TRUE(trip.losses.empty());
}

TEST_F(RoundTripTest, FilesOfOtherNumberAreABreakOfWriting) {
  Planted planted;
  planted.files.pop_back();
  const RoundTrip trip = judged(planted);
  ASSERT_EQ(trip.breaks.size(), 1U);
  EXPECT_EQ(trip.breaks[0].seam, Seam::kWriting);
  EXPECT_TRUE(trip.losses.empty());
}

TEST(RoundTrips, ACaptureWithoutOpSpecsHasNone) {
  CaptureBuilder b;
  b.compile("inductor");
  const Capture capture = b.finish();
  const auto found = round_trips(capture);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());
}

}  // namespace
}  // namespace kerntrail
