// RUN: tilefw opt %s -p tile-to-lane{waves=4} | filecheck %s

// One address register for all accesses of a tile, constants as immediates, one predicate a vector of 16 bytes; the bias
// is loaded once, in the slice of the tile's layout, and picked, never converted.
// CHECK-LABEL: func.func @bias
// CHECK:      lane.load {{.*}}parts = "address", width = 4 : i64, {{.*}}buffer = 1 : i64, repeated} : (vector<1xi64>) -> vector<4xf32>
// CHECK:      lane.load {{.*}}width = 4 : i64, slots = array<i64: 0, 0>, immediates = array<i64: 0, 2048>, buffer = 0 : i64} : (vector<1xi64>) -> vector<8xf32>
// CHECK:      lane.pick %{{.*}} {indices = array<i64: 0, 1, 2, 3, 0, 1, 2, 3>} : (vector<4xf32>) -> vector<8xf32>
// CHECK:      lane.addf %{{.*}} : vector<8xf32>
// CHECK:      lane.store {{.*}}slots = array<i64: 0, 0>, immediates = array<i64: 0, 2048>
func.func @bias(%x: !tile.ptr<f32> {tile.divisible = 16 : i64}, %b: !tile.ptr<f32> {tile.divisible = 16 : i64}) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %row = tile.constant 64 : i32
  %bias = tile.load_block %b at (%zero : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<64xf32>
  %v = tile.load_block %x at (%zero, %zero : i32, i32) strides (%row, %one : i32, i32) : !tile.ptr<f32>, tensor<16x64xf32>
  %wide = tile.expand_dims %bias axis 0 : tensor<64xf32>
  %all = tile.broadcast %wide : tensor<1x64xf32> to tensor<16x64xf32>
  %sum = tile.addf %v, %all : tensor<16x64xf32>
  tile.store_block %x, %sum at (%zero, %zero : i32, i32) strides (%row, %one : i32, i32) : !tile.ptr<f32>, tensor<16x64xf32>
  func.return
}
