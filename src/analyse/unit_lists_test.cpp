#include "analyse/unit_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kerntrail::analyse {
namespace {

using ::testing::ElementsAre;

TEST(UnitLists, KeepsTheOrderOfEachUnit) {
  UnitLists<int> lists;
  lists.add(id_at<UnitId>(4), 1);
  lists.add(id_at<UnitId>(0), 2);
  lists.add(id_at<UnitId>(4), 3);
  lists.close();
  EXPECT_THAT(lists.of(id_at<UnitId>(4)), ElementsAre(1, 3));
  EXPECT_THAT(lists.of(id_at<UnitId>(0)), ElementsAre(2));
  EXPECT_TRUE(lists.of(id_at<UnitId>(1)).empty());
  EXPECT_FALSE(lists.has(id_at<UnitId>(3)));
  EXPECT_TRUE(lists.of(id_at<UnitId>(5)).empty());
  EXPECT_TRUE(lists.of(UnitId::kNone).empty());
}

TEST(UnitLists, IsEmptyWithoutValuesAndBeforeItIsClosed) {
  UnitLists<int> lists;
  EXPECT_TRUE(lists.of(id_at<UnitId>(0)).empty());
  lists.close();
  EXPECT_TRUE(lists.of(id_at<UnitId>(0)).empty());
}

TEST(UnitLists, LeavesOutWhatWasJustAdded) {
  UnitLists<int> lists;
  for (const int value : {1, 1, 2, 1}) lists.add(id_at<UnitId>(2), value);
  lists.add(id_at<UnitId>(3), 1);
  lists.close([](int a, int b) { return a == b; });
  EXPECT_THAT(lists.of(id_at<UnitId>(2)), ElementsAre(1, 2, 1));
  EXPECT_THAT(lists.of(id_at<UnitId>(3)), ElementsAre(1));
}

}  // namespace
}  // namespace kerntrail::analyse
