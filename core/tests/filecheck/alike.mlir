// RUN: tilefw opt %s -p tile-to-lane{waves=1} | filecheck %s

// Neighbours that surely compare alike are compared once: the bound is a multiple of 16, and so is where each lane's four begin.
// CHECK-LABEL: func.func @masked
// CHECK:      %[[M:.*]] = lane.lts %{{.*}} : vector<1xi32>
// CHECK:      lane.pick %[[M]] {indices = array<i64: 0, 0, 0, 0>} : (vector<1xi1>) -> vector<4xi1>
// CHECK:      lane.select %{{.*}} : vector<4xf32>
// CHECK-LABEL: func.func @unknown
// CHECK:      lane.lts %{{.*}} : vector<4xi32>
func.func @masked(%x: !tile.ptr<f32> {tile.divisible = 16 : i64}, %n: i32 {tile.divisible = 16 : i64}) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %none = tile.constant 1.0 : tensor<128xf32>
  %i = tile.iota 0 to 128
  %limit = tile.splat %n : i32 to tensor<128xi32>
  %inside = tile.lts %i, %limit : tensor<128xi32>
  %v = tile.load_block %x at (%zero : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<128xf32>
  %w = tile.select %inside, %v, %none : tensor<128xf32>
  tile.store_block %x, %w at (%zero : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<128xf32>
  func.return
}
func.func @unknown(%x: !tile.ptr<f32> {tile.divisible = 16 : i64}, %n: i32) {
  %zero = tile.constant 0 : i32
  %one = tile.constant 1 : i32
  %none = tile.constant 1.0 : tensor<128xf32>
  %i = tile.iota 0 to 128
  %limit = tile.splat %n : i32 to tensor<128xi32>
  %inside = tile.lts %i, %limit : tensor<128xi32>
  %v = tile.load_block %x at (%zero : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<128xf32>
  %w = tile.select %inside, %v, %none : tensor<128xf32>
  tile.store_block %x, %w at (%zero : i32) strides (%one : i32) : !tile.ptr<f32>, tensor<128xf32>
  func.return
}
