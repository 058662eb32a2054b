#include "read/byte_source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "read/line_source.h"
#include "read/test_compression.h"

namespace kerntrail::read {
namespace {

using test::gzip;
using test::zstd;

struct Result {
  std::string text;
  std::string torn;
  std::optional<Error> error;
};

Result read_all(std::string_view bytes, std::size_t block = 777) {
  Result out;
  const auto source = ByteSource::of_text(bytes, "name");
  std::string buffer(block, '\0');
  for (;;) {
    const auto n = source->read(buffer.data(), buffer.size());
    if (!n) {
      out.error = n.error();
      return out;
    }
    if (*n == 0) break;
    out.text.append(buffer, 0, *n);
  }
  out.torn = source->torn_reason();
  return out;
}

std::string long_text() {
  std::string out;
  for (int i = 0; i < 20000; ++i) out += "line " + std::to_string(i * 7919) + "\n";
  return out;
}

TEST(ByteSource, ReadsPlainAndCompressedByContent) {
  const std::string text = long_text();
  for (const std::string& bytes : {text, gzip(text), zstd(text)}) {
    const Result result = read_all(bytes);
    EXPECT_FALSE(result.error);
    EXPECT_EQ(result.text, text);
    EXPECT_EQ(result.torn, "");
  }
}

TEST(ByteSource, JoinsFramesAndMembers) {
  EXPECT_EQ(read_all(gzip("one ") + gzip("") + gzip("two")).text, "one two");
  EXPECT_EQ(read_all(zstd("one ") + zstd("") + zstd("two")).text, "one two");
  std::string skippable("\x50\x2A\x4D\x18\x03\x00\x00\x00xyz", 11);
  EXPECT_EQ(read_all(skippable + zstd("two")).text, "two");
  EXPECT_EQ(read_all(zstd("one") + skippable).text, "one");
}

TEST(ByteSource, SmallInputs) {
  for (const std::string bytes : {"", "\x1F", "a", "\x28\xB5"}) {
    const Result result = read_all(bytes);
    EXPECT_FALSE(result.error);
    EXPECT_EQ(result.text, bytes);
  }
}

// Cut anywhere: what was decoded is kept, the end is called torn, and only a cut between two pieces is none.
TEST(ByteSource, KeepsWhatCouldBeDecodedOfACutStream) {
  const std::string one = long_text(), two = "second piece";
  for (const bool use_gzip : {true, false}) {
    const std::string first = use_gzip ? gzip(one) : zstd(one);
    const std::string bytes = first + (use_gzip ? gzip(two) : zstd(two));
    for (std::size_t cut = 5; cut < bytes.size();
         cut += cut < bytes.size() - 60 && cut < first.size() - 20 ? 997U : 1U) {
      const Result result = read_all(std::string_view(bytes).substr(0, cut));
      ASSERT_FALSE(result.error) << cut << ": " << result.error->text();
      EXPECT_EQ(result.torn.empty(), cut == first.size()) << cut;
      EXPECT_EQ(result.text, (one + two).substr(0, result.text.size()));
      if (cut >= first.size()) {
        EXPECT_GE(result.text.size(), one.size());
      }
    }
  }
}

TEST(ByteSource, NamesTheByteOfGarbage) {
  for (const bool use_gzip : {true, false}) {
    const std::string good = use_gzip ? gzip("text") : zstd("text");
    const Result after = read_all(good + "garbage that is no frame");
    ASSERT_TRUE(after.error);
    EXPECT_EQ(after.error->code, ErrorCode::kSyntax);
    EXPECT_NE(after.error->message.find("stream is damaged near byte"), std::string::npos) << after.error->message;
    EXPECT_EQ(after.error->path, "name");
    EXPECT_EQ(after.text, "text");
    std::string flipped = use_gzip ? gzip(long_text()) : zstd(long_text());
    flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 0x10);
    const Result inside = read_all(flipped);
    EXPECT_TRUE(inside.error || !inside.torn.empty());
  }
}

TEST(ByteSource, MissingFilesAndFoldersAreErrors) {
  const auto missing = ByteSource::open("/no/such/file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().text(), "/no/such/file: can't be opened: No such file or directory [io]");
  const auto folder = ByteSource::open("/");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::kIo);
}

std::vector<std::string> lines_of(std::string_view text, std::uint64_t limit = 1 << 30) {
  LineSource lines(ByteSource::of_text(text, "name"), "name", limit);
  std::vector<std::string> out;
  for (;;) {
    const auto line = lines.next();
    if (!line) {
      out.push_back(line.error().text());
      return out;
    }
    if (!*line) return out;
    out.push_back(std::string((*line)->text) + ((*line)->finished ? "" : " (cut)"));
  }
}

TEST(LineSource, SplitsAtLineEnds) {
  EXPECT_EQ(lines_of(""), std::vector<std::string>{});
  EXPECT_EQ(lines_of("a\n\nb\n"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\nb"), (std::vector<std::string>{"a", "b (cut)"}));
}

TEST(LineSource, LinesLongerThanItsFirstBuffer) {
  const std::string a(1 << 20, 'a'), b(3 << 20, 'b');
  EXPECT_EQ(lines_of(a + "\nx\n" + b + "\ny"), (std::vector<std::string>{a, "x", b, "y (cut)"}));
}

TEST(LineSource, RefusesEndlessLinesAndHugeFiles) {
  const std::string bomb = zstd(std::string(kMaxLine + 100, ' '));
  EXPECT_LT(bomb.size(), std::size_t{100000});
  EXPECT_EQ(lines_of(bomb), std::vector<std::string>{"name:1: a line is longer than 64 MiB [too-large]"});
  EXPECT_EQ(lines_of(zstd(std::string(1 << 20, '\n')), 1000).back(), "name:1: holds more than 1000 bytes [too-large]");
  const std::string longest = std::string(kMaxLine, 'x');
  const auto lines = lines_of(longest + "\nnext\n", std::uint64_t{1} << 40);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size(), kMaxLine);
}

}  // namespace
}  // namespace kerntrail::read
